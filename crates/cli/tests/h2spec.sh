#!/bin/sh
# Runs the conformance tests of h2spec against servers of this program, without TLS and with it. They need the program and h2spec:
#
#     sh crates/cli/tests/h2spec.sh target/release/polygraph h2spec
set -eu

program=$1 h2spec=$2
work=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi; rm -r "$work"' EXIT

for tls in no yes; do
    # Nothing may be read of the server before.
    : >"$work/messages"
    "$program" server --listen 127.0.0.1:0 --tls "$tls" --ign_urls yes --accept_foreign_msgs yes --rep_sz 10KB \
        --pconn_use_lmt 100000 --goal 10min 2>"$work/messages" >"$work/summary" &
    server=$!
    for _ in $(seq 100); do
        port=$(sed -n 's/^listening at 127\.0\.0\.1:\([0-9]*\)$/\1/p' "$work/messages")
        [ -z "$port" ] || break
        sleep 0.1
    done
    echo "h2spec with TLS: $tls"
    secure=
    if [ "$tls" = yes ]; then secure='-t -k'; fi
    # shellcheck disable=SC2086 # two options, or none
    "$h2spec" -h 127.0.0.1 -p "$port" -P /x -o 5 $secure
    kill "$server"
    wait "$server" || true
    server=
done
