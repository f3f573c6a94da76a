#!/usr/bin/env bash
# Writes the comparison of the result directories BASELINE and RUN to a file as Markdown. Lines of FAIL_ON are conditions. The exit code of
# `polygraph compare` becomes an output of the step; works outside of GitHub Actions, too.
set -euo pipefail
file=$1
conditions=()
while read -r condition; do
    [ -z "$condition" ] || conditions+=(--fail_on "$condition")
done <<<"${FAIL_ON:-}"

code=0
{
    echo '<!-- polygraph compare -->'
    echo '### polygraph'
    echo
    "${POLYGRAPH:-polygraph}" compare --markdown ${conditions[@]+"${conditions[@]}"} "$BASELINE" "$RUN" 2>"$file.err" || code=$?
    echo
    case $code in
        0) echo 'No condition of `fail_on` is true.' ;;
        14) echo '**A condition of `fail_on` is true.**' ;;
        16) echo '**Not decided:** a change exceeds a condition of `fail_on`, but may be noise. Measure longer, or more often.' ;;
        15) echo '**The runs cannot be compared**, or one of them is INVALID.' ;;
        *) echo "**The comparison failed** with exit code $code." ;;
    esac
    if [ -s "$file.err" ]; then
        printf '\n```\n%s\n```\n' "$(cat "$file.err")"
    fi
} >"$file"
rm -f "$file.err"
cat "$file"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$file" >>"$GITHUB_STEP_SUMMARY"
[ -z "${GITHUB_OUTPUT:-}" ] || echo "exit_code=$code" >>"$GITHUB_OUTPUT"
[ -n "${GITHUB_OUTPUT:-}" ] || exit "$code"
