#!/bin/sh
# PolyMix-4 with a fleet (docs/fleet.md) on one machine: four clients, four servers, Squid and a monitor are hosts of a lab
# (docs/lab.md), with an agent on each client and server and NATS on the monitor. One command runs the test with all of them, and
# ends with one report. The same load then runs on a single host, and both results are compared.
#
#     sudo examples/fleet.sh                                 # a short trial, about ten minutes
#     sudo SCALE=1/40 RATE=400 examples/fleet.sh             # longer, and more of it
#
# The script needs root, Squid and nats-server. Every value below can be set in the environment.
set -eu

RATE=${RATE:-160}                       # peak request rate per second of all clients together
SCALE=${SCALE:-1/240}                   # length of the phases: plateaus have four hours at full length
CACHE=${CACHE:-128MB}                   # disk and memory of the proxy: the fill writes it twice, scaled
SINGLE=${SINGLE:-yes}                   # no: leave the single host and the comparison out
NAME=${NAME:-fleet}                     # name of the lab
RUNS=${RUNS:-runs}                      # where results go
POLYGRAPH=${POLYGRAPH:-polygraph}       # this program

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
chmod 755 "$work"                       # Squid works as a user of its own
started=""
# Agents end their processes in order; whatever else runs in the lab ends with it.
trap 'kill $started 2>/dev/null || :; wait; "$POLYGRAPH" lab down "$NAME" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

step() { printf '\n== %s\n' "$*"; }
on() { host=$1; shift; "$POLYGRAPH" lab exec "$NAME" "$host" -- "$@"; }
# Starts a program on a host in the background, and waits until it has said what is expected of it.
start() {
    host=$1 name=$2 expected=$3
    shift 3
    : > "$work/$name.txt"
    "$POLYGRAPH" lab exec "$NAME" "$host" -- "$@" > "$work/$name.txt" 2>&1 < /dev/null &
    started="$! $started"
    for _ in $(seq 300); do
        ! grep -q "$expected" "$work/$name.txt" || return 0
        sleep 0.2
    done
    cat "$work/$name.txt" >&2
    return 1
}

monitor=172.16.101.100
proxy=172.16.101.32
hosts="clt1 clt2 clt3 clt4 srv1 srv2 srv3 srv4"
# A quarter of the load for each host. Names of origins come from a name server on the monitor.
half=$(awk -v rate="$RATE" 'BEGIN { print rate / 2 }')
bench="--set TheBench.peak_req_rate=$RATE/sec --set ProxyCacheSize=$CACHE --set FillRate=$half/sec"
quarter=$(awk -v rate="$RATE" 'BEGIN { print rate / 4 }')
spread="--set TheBench.client_side.max_host_load=$quarter/sec --set TheBench.server_side.max_host_load=$quarter/sec"
space="--set TheBench.client_side.addr_space=['lo0::10.101.0-123.1-250/22'] --set TheBench.server_side.addr_space=['lo0::10.101.128-251.1-250:80/22']"
names="--set DnsServers=['$monitor:53']"
test="--config $here/workloads/polymix-4.pg $bench $spread $space $names"

step "1: the lab"
"$POLYGRAPH" lab up "$here/labs/fleet.toml" --name "$NAME" $bench $spread
"$POLYGRAPH" lab status "$NAME"

step "2: the name server and the proxy"
start monitor dns "53" "$POLYGRAPH" dns $test --listen "$monitor:53"
cat > "$work/squid.conf" <<END
http_port $proxy:8080
http_access allow all
dns_nameservers $monitor
cache_mem 64 MB
maximum_object_size_in_memory 1 MB
collapsed_forwarding off
access_log none
cache_log stdio:/dev/stderr
pid_filename none
coredump_dir $work
pinger_enable off
shutdown_lifetime 0 seconds
END
start device squid "Accepting HTTP" squid -N -d1 -n "$(echo "$NAME" | tr -d -)squid" -f "$work/squid.conf"

step "3: NATS on the monitor, with a user and a password"
nats="nats://bench:$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')@$monitor"
cat > "$work/nats.conf" <<END
listen: "$monitor:4222"
jetstream { store_dir: "$work/nats" }
authorization { users: [ { user: bench, password: "$(echo "$nats" | sed 's|.*bench:\(.*\)@.*|\1|')" } ] }
END
start monitor nats "Server is ready" nats-server -c "$work/nats.conf"

step "4: an agent on every client and server"
for host in $hosts; do
    case $host in clt*) role=client ;; *) role=server ;; esac
    start "$host" "$host" "ready for runs" "$POLYGRAPH" agent --nats "$nats" --name "$host" --roles "$role" --logs "$work/$host"
done
on monitor "$POLYGRAPH" fleet ls --fleet "$nats"

step "5: the test, with one command"
on monitor "$POLYGRAPH" run $test --fleet "$nats" --agents "$(echo $hosts | tr ' ' ,)" --proxy "$proxy:8080" --scale "$SCALE" \
    --start_in "${START_IN:-20s}" --label fleet --runs "$RUNS" --out "$RUNS/$NAME-fleet" || [ $? -eq 1 ]

step "6: the result"
ls "$RUNS/$NAME-fleet"

if [ "$SINGLE" = yes ]; then
    step "7: the same load on a single host"
    # Four event loops that share what they know of objects, as the four clients of the fleet do.
    "$POLYGRAPH" run --config "$here/workloads/polymix-4.pg" $bench --scale "$SCALE" --loops 4 --share_worlds yes --device squid --device_opt mem=64MB \
        --set "TheBench.client_side.addr_space=['127.101.0-123.1-250']" --set "DnsServers=[]" \
        --set "TheBench.server_side.addr_space=['127.101.128-251.1-250:9080']" \
        --label single --runs "$RUNS" --out "$RUNS/$NAME-single" || [ $? -eq 1 ]

    step "8: both results"
    # --anyway: the addresses of robots and servers differ.
    "$POLYGRAPH" compare "single=$RUNS/$NAME-single" "fleet=$RUNS/$NAME-fleet" --phases top1,top2 --anyway
fi
echo "report: $RUNS/$NAME-fleet/report.html"
