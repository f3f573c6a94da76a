#!/bin/sh
# Runs all tests of the workspace. Many of them measure real time beside others, on a host that may be busy with other
# work, so a few tests that fail are run a second time, alone. A test that fails twice fails the suite. A test that
# passes the second time is named at the end: it depends on the load of the host, which is a defect of the test or of
# what it tests.
set -u
cargo=${CARGO:-cargo}
most=4
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

# Runs the tests with the options given, and keeps what is printed.
run() {
    name=$1
    shift
    { "$cargo" test --workspace --features polygraph/manual --locked --no-fail-fast "$@" 2>&1; echo $? >"$log/status"; } | tee "$log/$name"
    read -r status <"$log/status"
    return "$status"
}

RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
export RUST_TEST_THREADS
run first && exit 0
first=$status

sed -n 's/^test \([^ ]*\) \.\.\. FAILED$/\1/p' "$log/first" >"$log/failed"
failed=$(wc -l <"$log/failed")
counted=$(sed -n 's/^test result: FAILED\. .*; \([0-9]*\) failed;.*/\1/p' "$log/first" | awk '{ sum += $1 } END { print sum + 0 }')
# Whatever else went wrong, such as a crate that does not compile or a failed example of the documentation, stays so.
if [ "$failed" -eq 0 ] || [ "$failed" -ne "$counted" ] || [ "$failed" -gt "$most" ]; then
    exit "$first"
fi

echo "== $failed failed; run once more, alone"
# Names of tests have no spaces.
# shellcheck disable=SC2046
RUST_TEST_THREADS=1 run again --lib --bins --tests -- --exact $(cat "$log/failed") || exit "$status"
while read -r name; do
    grep -qxF "test $name ... ok" "$log/again" || exit "$first"
    echo "flaky: $name failed beside other tests and passes alone"
done <"$log/failed"
