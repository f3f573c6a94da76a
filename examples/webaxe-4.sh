#!/bin/sh
# "How To Run WebAxe-4" step by step on one machine: clients, servers, the surrogate and the monitoring station are hosts of a
# lab (docs/lab.md). The numbers of the steps are those of the how-to. The script needs root, and Varnish or nginx for step 8.
#
#     sudo examples/webaxe-4.sh                               # a short trial, about six minutes
#     sudo DEVICE=nginx RATE=20 PLATEAU=20 examples/webaxe-4.sh
#     sudo RATE=400 PLATEAU=14400 RAMP=1200 MSL_TEST=yes FILL_SIZE=2GB WSS=1GB examples/webaxe-4.sh   # the real one
#
# Every value below can be set in the environment.
set -eu

BENCH=${BENCH:-101}                     # the X of 10.X.0.0/16 and 172.16.X.0/24
RATE=${RATE:-40}                        # peak request rate per second
PLATEAU=${PLATEAU:-60}                  # length of each of the two plateaus in seconds
RAMP=${RAMP:-5}                         # length of ramps and of the idle valley in seconds
FILL_SIZE=${FILL_SIZE:-8MB}             # disk and memory of the surrogate: the fill writes it twice
WSS=${WSS:-4MB}                         # working set of the site
DELAY=${DELAY:-40ms}                    # delay in each direction
LOSS=${LOSS:-0.05%}                     # lost packets in each direction
DEVICE=${DEVICE:-varnish}               # the surrogate
INITIAL_WINDOW=${INITIAL_WINDOW:-1}     # segments with which TCP connections start: 1 on FreeBSD 4, 10 today (RFC 6928)
RECEIVE_WINDOW=${RECEIVE_WINDOW:-16384} # largest TCP window in bytes: 16384 on FreeBSD 4
MSL_TEST=${MSL_TEST:-no}                # yes: step 7.2, which takes a minute
THROUGHPUT_TIME=${THROUGHPUT_TIME:-5s}  # length of the check of the network
NAME=${NAME:-webaxe-4}                  # name of the lab
RUNS=${RUNS:-runs}                      # where results go
POLYGRAPH=${POLYGRAPH:-polygraph}       # this program

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap '"$POLYGRAPH" lab down "$NAME" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Response times vary by about 0.25 s, so the mean of n transactions varies by 0.25/sqrt(n): three times that and 0.045 s is how
# far the mean may be from 0.53 s. Linux acknowledges the first segments of a reply at once, FreeBSD did not: 0.495 s is usual.
tolerance=$(awk -v n="$RATE" -v s="$PLATEAU" 'BEGIN { printf "%.3f", 0.045 + 3 * 0.25 / sqrt(n * s) }')
least=$(awk -v t="$tolerance" 'BEGIN { print 0.53 - t }')
most=$(awk -v t="$tolerance" 'BEGIN { print 0.53 + t }')

# Waits until a program that runs in the background has said something.
wait_for_output() {
    for _ in $(seq 100); do
        [ ! -s "$1" ] || return 0
        sleep 0.2
    done
    echo "nothing in $1 after 20 s" >&2
    return 1
}
# Ends a program that runs in the background, which was started without a function of the shell around it.
stop() { kill "$1"; wait "$1" || :; }
step() { printf '\n== %s\n' "$*"; }
on() { host=$1; shift; "$POLYGRAPH" lab exec "$NAME" "$host" -- "$@"; }
# Sets the windows of TCP for all connections of a host, route by route.
old_tcp() {
    on "$1" ip -4 route show | while read -r route; do
        # The words of a route are separate arguments.
        on "$1" ip route change $route initcwnd "$INITIAL_WINDOW" window "$RECEIVE_WINDOW" < /dev/null
    done
    on "$1" ip -4 route show
}
hosts() { "$POLYGRAPH" lab status "$NAME" | awk -v role="$1" '$2 == role { print $1 }'; }

step "2: the software"
"$POLYGRAPH" --version

step "5.1: the workload file"
# "Copy webaxe-4.pg into a new working directory": two clients and two servers share the rate, whatever it is, so that each
# client has a /22 of its own.
cp "$here"/workloads/include/*.pg "$work"
sed -e "s|^TheBench.server_side.hosts = .*|TheBench.client_side.addr_space = [ 'lo0::10.$BENCH.0-123.1-250/22' ];\
TheBench.client_side.hosts = [ '172.16.$BENCH.61-62' ];\
TheBench.server_side.hosts = [ '172.16.$BENCH.191-192:80' ];|" \
    -e "s|^TheBench.proxy_side.hosts = .*|TheBench.proxy_side.hosts = [ '172.16.$BENCH.32:80' ];|" \
    -e "s|^TheBench.peak_req_rate = .*|TheBench.peak_req_rate = $RATE/sec;\
TheBench.client_side.max_host_load = TheBench.peak_req_rate / 2;\
TheBench.server_side.max_host_load = TheBench.peak_req_rate / 2;|" \
    -e "s|^rate FillRate = .*|rate FillRate = 75% * TheBench.peak_req_rate;|" \
    -e "s|^size ProxyCacheSize = .*|size ProxyCacheSize = $FILL_SIZE;|" \
    -e "s|^size WSS = .*|size WSS = $WSS;|" \
    "$here/workloads/webaxe-4.pg" > "$work/webaxe-4.pg"
# Shorter plateaus and ramps; the cache-off had four hours and twenty minutes.
sed -i -e "s|^time platDur = .*|time platDur = ${PLATEAU}sec;|" "$work/webaxe-4-guts.pg"
sed -i -e "s|^time rampDur = .*|time rampDur = ${RAMP}sec;|" "$work/phases-4.pg"
grep '^TheBench\|^rate\|^size' "$work/webaxe-4.pg"

step "The lab: hosts with their addresses of 172.16.$BENCH.0/24 on one switch"
sed -e "s|172\.16\.101\.|172.16.$BENCH.|g" "$here/labs/webaxe-4.toml" > "$work/$NAME.toml"
"$POLYGRAPH" lab up "$work/$NAME.toml" --config "$work/webaxe-4.pg" --bare

step "3.1, 5.2: a full mesh of routes to the robots"
# On each server, the monitoring station and the surrogate; clients talk to one another in no step.
for host in $(hosts server) $(hosts device) $(hosts monitor); do
    on "$host" "$POLYGRAPH" net routes --config "$work/webaxe-4.pg" --add
done

step "1: TCP as it was"
# With today's windows most replies arrive within one round trip, and responses are faster than the how-to says.
for host in $(hosts client) $(hosts server); do old_tcp "$host"; done

step "4.1: alias addresses, to test the network"
# The clients of a test add the addresses of their robots by themselves; "in order to test your network setup, you'll need to
# manually add some aliases".
on clt1 "$POLYGRAPH" aka lo "10.$BENCH.0.1"
on clt2 "$POLYGRAPH" aka lo "10.$BENCH.4.1"

step "4.2: clients and servers can ping each other"
for server in 191 192; do
    on clt1 ping -n -q -c 2 -i 0.2 -I "10.$BENCH.0.1" "172.16.$BENCH.$server"
    on clt2 ping -n -q -c 2 -i 0.2 -I "10.$BENCH.4.1" "172.16.$BENCH.$server"
done

step "4.3: throughput of the network in both directions (netperf)"
"$POLYGRAPH" lab exec "$NAME" srv1 -- "$POLYGRAPH" net throughput --listen "172.16.$BENCH.191" > "$work/throughput.txt" 2>&1 &
listener=$!
wait_for_output "$work/throughput.txt"
on clt1 "$POLYGRAPH" net throughput --from "10.$BENCH.0.1" --duration "$THROUGHPUT_TIME" --to "172.16.$BENCH.191"
stop "$listener"

step "5.3: delay and loss on the clients (Dummynet)"
for host in $(hosts client); do
    on "$host" "$POLYGRAPH" net wan --delay "$DELAY" --loss "$LOSS" --match "10.$BENCH.0.0/16"
done
# "Ping a client from a server and you should see round trip times of about 80 msec."
on srv1 ping -n -q -c 5 -i 0.2 "10.$BENCH.0.1"
on clt1 "$POLYGRAPH" aka lo "10.$BENCH.0.1" --remove
on clt2 "$POLYGRAPH" aka lo "10.$BENCH.4.1" --remove

step "6: a no-surrogate test"
# The custom workload of the how-to: its files in one, without their #include and the phases of the fill. "To send robots requests
# directly to Polygraph servers, set origins to S.addresses."
cat "$work/webaxe-4.pg" "$work/webaxe-4-agents.pg" "$work/webaxe-4-guts.pg" | sed \
    -e '/#include "webaxe-4-guts.pg"/d' -e '/#include "webaxe-4-agents.pg"/d' \
    -e 's|^ *phFRamp, phFill, phFExit,|    // phFRamp, phFill, phFExit,|' \
    -e 's|origins = TheMap.names;|origins = S.addresses;|' -e 's|^use(TheBench, S, TheMap, R);|use(TheBench, S, R);|' \
    > "$work/my.pg"
"$POLYGRAPH" lab run "$NAME" --no_proxy --config "$work/my.pg" --runs "$RUNS" --label no-surrogate \
    --out "$RUNS/$NAME-no-surrogate" --expect "rptm@top1>=${least}s" --expect "rptm@top1<=${most}s"

step "7.1: ping the surrogate"
for host in $(hosts client) $(hosts server); do on "$host" ping -n -q -c 2 -i 0.2 "172.16.$BENCH.32"; done

step "7.2: TIME_WAIT of the surrogate's host (msl_test)"
if [ "$MSL_TEST" = yes ]; then
    # Something has to listen at the port of the surrogate: a proxy of this program, until the test is over.
    "$POLYGRAPH" lab exec "$NAME" device -- "$POLYGRAPH" proxy --listen "172.16.$BENCH.32:80" > "$work/proxy.txt" 2>&1 &
    proxy=$!
    wait_for_output "$work/proxy.txt"
    on clt1 "$POLYGRAPH" net msl_test -i eth0 -d "172.16.$BENCH.32" -p 80
    stop "$proxy"
else
    echo "left out, because it takes a minute: MSL_TEST=yes"
fi

step "8: the test of the surrogate"
# 8.1 to 8.4: the lab has the workload file on every host, and starts servers, the surrogate and clients.
"$POLYGRAPH" lab run "$NAME" --device "$DEVICE" --config "$work/webaxe-4.pg" --runs "$RUNS" --label "$DEVICE" \
    --out "$RUNS/$NAME-$DEVICE"

step "9: the results"
# 9.1, 9.2: the logs of all hosts are in one directory. 9.3, 9.4: the report is there, too.
ls "$RUNS/$NAME-$DEVICE"
echo "report: $RUNS/$NAME-$DEVICE/report.html"
