#!/bin/sh
# "How To Run PolyMix-3" step by step on one machine: clients, servers, the proxy and the monitoring station are hosts of a
# lab (docs/lab.md). The numbers of the steps are those of the how-to. The script needs root, and Squid for step 7.
#
#     sudo examples/polymix-3.sh                              # a short trial, about six minutes
#     sudo RATE=20 PLATEAU=20 examples/polymix-3.sh           # shorter
#     sudo RATE=400 PLATEAU=14400 RAMP=1800 MSL_TEST=yes FILL_SIZE=2GB examples/polymix-3.sh   # the real one
#
# Every value below can be set in the environment.
set -eu

BENCH=${BENCH:-16}                      # the X of 10.X.0.0/16
RATE=${RATE:-40}                        # peak request rate per second
PLATEAU=${PLATEAU:-60}                  # length of each of the two plateaus in seconds
RAMP=${RAMP:-5}                         # length of ramps and of the idle valley in seconds
FILL_SIZE=${FILL_SIZE:-8MB}             # disk and memory of the proxy: the fill writes it twice
DELAY=${DELAY:-40ms}                    # delay in each direction
LOSS=${LOSS:-0.05%}                     # lost packets in each direction
DEVICE=${DEVICE:-squid}                 # the proxy
INITIAL_WINDOW=${INITIAL_WINDOW:-1}     # segments with which TCP connections start: 1 on FreeBSD 4, 10 today (RFC 6928)
RECEIVE_WINDOW=${RECEIVE_WINDOW:-16384} # largest TCP window in bytes: 16384 on FreeBSD 4
MSL_TEST=${MSL_TEST:-no}                # yes: step 6.2, which takes a minute
THROUGHPUT_TIME=${THROUGHPUT_TIME:-5s}  # length of the check of the network
NAME=${NAME:-polymix-3}                 # name of the lab
RUNS=${RUNS:-runs}                      # where results go
POLYGRAPH=${POLYGRAPH:-polygraph}       # this program

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap '"$POLYGRAPH" lab down "$NAME" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Response times vary by about 1.1 s, so the mean of n transactions varies by 1.1/sqrt(n): three times that, and the 0.1 s that
# the how-to leaves, is how far the mean may be from 2.8 s.
tolerance=$(awk -v n="$RATE" -v s="$PLATEAU" 'BEGIN { printf "%.2f", 0.1 + 3 * 1.1 / sqrt(n * s) }')
least=$(awk -v t="$tolerance" 'BEGIN { print 2.8 - t }')
most=$(awk -v t="$tolerance" 'BEGIN { print 2.8 + t }')

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

step "3.1, 3.2: the workload file, with the subnet 10.$BENCH.0.0"
# "Copy polymix-3.pg into a new working directory", and "edit polymix-3.pg and define the following variables".
cp "$here"/workloads/include/*.pg "$work"
sed -e "s|^TheBench.client_side.addr_mask = .*|TheBench.client_side.addr_mask = '10.$BENCH.0.0';|" \
    -e "s|^TheBench.server_side.addr_mask = .*|TheBench.server_side.addr_mask = '10.$BENCH.0.0:80';|" \
    -e "s|^TheBench.peak_req_rate = .*|TheBench.peak_req_rate = $RATE/sec;|" \
    -e "s|^rate FillRate = .*|rate FillRate = 50% * TheBench.peak_req_rate;|" \
    -e "s|^size ProxyCacheSize = .*|size ProxyCacheSize = $FILL_SIZE;|" \
    "$here/workloads/polymix-3.pg" > "$work/polymix-3.pg"
# Shorter plateaus and ramps; the cache-off had four hours and half an hour.
sed -i -e "s|^time platDur = .*|time platDur = ${PLATEAU}sec;|" -e "s|^time rampDur = .*|time rampDur = ${RAMP}sec;|" \
    -e "s#goal.duration = [13]min#goal.duration = ${RAMP}sec#" "$work/polymix-3-guts.pg" "$work/phases.pg"
# Robots first visit each of the more than 500 servers. At a tenth of the load, as in the real test, that takes minutes.
[ "$PLATEAU" -ge 600 ] || sed -i 's|load_factor_beg = 0.1;|load_factor_beg = 1.0;|' "$work/polymix-3-guts.pg"
grep '^TheBench\|^rate\|^size' "$work/polymix-3.pg"

step "The lab: hosts with their own addresses on one switch"
sed -e "s|10\.16\.|10.$BENCH.|g" "$here/labs/polymix-3.toml" > "$work/$NAME.toml"
"$POLYGRAPH" lab up "$work/$NAME.toml" --config "$work/polymix-3.pg" --bare

step "1: TCP as it was"
# With today's windows most replies arrive within one round trip, and the mean response time is 2.67 s instead of 2.8 s.
for host in $(hosts client) $(hosts server); do old_tcp "$host"; done

step "3.3: IP alias addresses"
"$POLYGRAPH" pmix3-ips "$BENCH" "$RATE"
number=0
for host in $(hosts client); do
    number=$((number + 1))
    on "$host" "$POLYGRAPH" aka eth0 "$("$POLYGRAPH" pmix3-ips "$BENCH" "$RATE" "clt$number")"
done
number=0
for host in $(hosts server); do
    number=$((number + 1))
    on "$host" "$POLYGRAPH" aka eth0 "$("$POLYGRAPH" pmix3-ips "$BENCH" "$RATE" "srv$number")"
done
# "Check your work": ifconfig is `ip addr` on Linux.
on clt1 ip -brief address show eth0 | cut -c1-100

step "3.5: delay and loss on the servers (Dummynet)"
for host in $(hosts server); do
    on "$host" "$POLYGRAPH" net wan --delay "$DELAY" --loss "$LOSS" --match "10.$BENCH.0.0/16"
done
# "Ping a client from a server and you should see round trip times of about 80 msec."
# -U: until ping reads the reply; otherwise the time when it reached this host would count, which is before the delay.
on srv1 ping -U -n -q -c 5 -i 0.2 "10.$BENCH.1.1"

step "4.1: clients and servers can ping each other"
on clt1 ping -n -q -c 2 -i 0.2 "10.$BENCH.129.1"
on clt1 ping -n -q -c 2 -i 0.2 "10.$BENCH.0.191"
on monitor ping -n -q -c 2 -i 0.2 "10.$BENCH.1.1"

step "4.2, 4.3: throughput of the network in both directions (netperf)"
# Without delay and loss, as the links are; they come back afterwards.
for host in $(hosts server); do on "$host" "$POLYGRAPH" net wan off; done
"$POLYGRAPH" lab exec "$NAME" srv1 -- "$POLYGRAPH" net throughput --listen "10.$BENCH.129.1" > "$work/throughput.txt" 2>&1 &
listener=$!
wait_for_output "$work/throughput.txt"
on clt1 "$POLYGRAPH" net throughput --from "10.$BENCH.1.1" --duration "$THROUGHPUT_TIME" --to "10.$BENCH.129.1"
stop "$listener"
for host in $(hosts server); do
    on "$host" "$POLYGRAPH" net wan --delay "$DELAY" --loss "$LOSS" --match "10.$BENCH.0.0/16" > "$work/wan.txt"
done

step "5: a no-proxy test"
# The custom workload of the how-to: both files in one, without the #include, and without the phases of the fill.
cat "$work/polymix-3.pg" "$work/polymix-3-guts.pg" | sed -e '/#include "polymix-3-guts.pg"/d' \
    -e 's|^ *phFRamp, phFill, phFExit,|    // phFRamp, phFill, phFExit,|' > "$work/my.pg"
"$POLYGRAPH" lab run "$NAME" --no_proxy --config "$work/my.pg" --runs "$RUNS" --label no-proxy \
    --out "$RUNS/$NAME-no-proxy" --expect "rptm@top1>=${least}s" --expect "rptm@top1<=${most}s"

step "6.1: ping the proxy"
for host in $(hosts client) $(hosts server); do on "$host" ping -n -q -c 2 -i 0.2 "10.$BENCH.0.1"; done

step "6.2: TIME_WAIT of the proxy's host (msl_test)"
if [ "$MSL_TEST" = yes ]; then
    # Something has to listen at the port of the proxy: a proxy of this program, until the test is over.
    "$POLYGRAPH" lab exec "$NAME" device -- "$POLYGRAPH" proxy --listen "10.$BENCH.0.1:8080" > "$work/proxy.txt" 2>&1 &
    proxy=$!
    wait_for_output "$work/proxy.txt"
    on clt1 "$POLYGRAPH" net msl_test -i eth0 -s "10.$BENCH.1.1" -d "10.$BENCH.0.1" -p 8080
    stop "$proxy"
else
    echo "left out, because it takes a minute: MSL_TEST=yes"
fi

step "7: the test of the proxy"
# 7.1 to 7.4: the lab has the workload file on every host, and starts servers, the proxy and clients.
"$POLYGRAPH" lab run "$NAME" --device "$DEVICE" --config "$work/polymix-3.pg" --runs "$RUNS" --label "$DEVICE" \
    --out "$RUNS/$NAME-$DEVICE"

# 8: the downtime test is `polygraph downtime --device squid`, which switches the device off and on by itself.

step "9: the results"
# 9.1, 9.2: the logs of all hosts are in one directory. 9.3, 9.4: the report is there, too.
ls "$RUNS/$NAME-$DEVICE"
"$POLYGRAPH" lx --objects rep_rate,rptm.mean,dhr --phases top1 "$RUNS/$NAME-$DEVICE"/*.log 2>/dev/null || :
echo "report: $RUNS/$NAME-$DEVICE/report.html"
