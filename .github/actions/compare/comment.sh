#!/usr/bin/env bash
# Writes a file as a comment on the pull request NUMBER, in place of the comment of an earlier run.
set -euo pipefail
file=$1
comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
earlier=$(gh api --paginate "$comments" --jq '.[] | select(.body | startswith("<!-- polygraph compare -->")) | .id' | head -n 1)
if [ -n "$earlier" ]; then
    gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$earlier" --field body=@"$file" >/dev/null
else
    gh api --method POST "$comments" --field body=@"$file" >/dev/null
fi
