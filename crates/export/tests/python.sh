#!/bin/sh
# Makes a Python environment in the folder $1 with what the tests read exported tables with, and with pyspnego, a peer for
# authentication, unless it is there.
set -eu
wanted=$(dirname "$0")/requirements.txt
cmp -s "$wanted" "$1/requirements.txt" && exit 0
python3 -m venv "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
cp "$wanted" "$1/requirements.txt"
