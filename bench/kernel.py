#!/usr/bin/env python3
"""What the kernel does for a transaction: nanoseconds by kind of work, of this project's programs on both engines and of their peers.

    cargo build --profile profiling --locked --features tls && bench/kernel.py

Needs `perf`. Samples are taken by the clock of the processor, with the call chain in the kernel, and the chain decides what kind of
work a sample belongs to. What a program sends over loopback is delivered to the receiver in the same system call, so each side pays
for a part of what the other one receives. The first run of a peer that is missing installs it, as in `bench.py`."""

import argparse
import collections
import itertools
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import bench
import pace
import protocols
import table
from clients import CLIENTS
from ratios import ENGINES, URING
from servers import OUR_SERVERS, SERVERS, Failure

RATE = 4_999

# The first kind of work one of whose functions occurs in a call chain decides. Functions that end with `*` begin like that.
KINDS = [
    ("interrupts", ["asm_sysvec*", "asm_common_interrupt", "run_timer_softirq", "sched_balance*", "rcu_core*"]),
    ("delivery", ["net_rx_action", "__netif_receive_skb*"]),
    ("sending", ["tcp_sendmsg*", "udp_sendmsg*", "tcp_push*"]),
    ("receiving", ["tcp_recvmsg*", "udp_recvmsg*", "tcp_cleanup_rbuf", "sock_recvmsg*"]),
    ("connections", ["*_connect*", "inet_accept", "inet_csk_accept", "tcp_close*", "inet_release", "__sock_release", "sock_close",
                     "__sys_socket*", "__sys_shutdown", "__sys_setsockopt", "inet_bind*", "inet_shutdown", "io_socket", "io_accept",
                     "__fput*", "sock_alloc*", "inet_create", "filp_close*", "do_accept", "__sock_create"]),
    ("waiting", ["schedule*", "__schedule", "finish_task_switch*", "try_to_wake_up"]),
    ("ring, poll", ["io_*", "__io_*", "ep_*", "do_epoll*", "__x64_sys_io_uring*", "__do_sys_io_uring*", "__x64_sys_epoll*"]),
]


def occurs(pattern, names):
    if pattern.startswith("*"):
        return any(pattern.strip("*") in name for name in names)
    if pattern.endswith("*"):
        return any(name.startswith(pattern[:-1]) for name in names)
    return pattern in names


def kind_of(chain):
    names = set(chain)
    for kind, patterns in KINDS:
        if any(occurs(pattern, names) for pattern in patterns):
            return kind
    return "other"


def samples(data):
    """Samples in user code, and in the kernel by kind of work and by function."""
    text = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"], capture_output=True, text=True, check=True).stdout
    user, kinds, functions = 0, collections.Counter(), collections.Counter()
    for block in text.split("\n\n"):
        frames = [line.strip().partition(" ") for line in block.splitlines() if line.strip()]
        chain = [symbol.partition("+")[0] for address, _, symbol in frames if int(address, 16) >> 63]
        if not frames:
            continue
        if not chain or not int(frames[0][0], 16) >> 63:
            user += 1
            continue
        kinds[kind_of(chain)] += 1
        functions[chain[0]] += 1
    return user, kinds, functions


PERF = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "-g", "-o"]


def recorder(program, data, folder):
    """A program that does the same as `program`, and is recorded the first time."""
    script = folder / f"recorded-{Path(program).name}"
    script.write_text(f"#!/bin/sh\n[ -e {data} ] && exec {program} \"$@\"\nexec {' '.join(PERF)} {data} -- {program} \"$@\"\n")
    script.chmod(0o755)
    return str(script)


def client_profile(tools, case, run_client, name, port, folder):
    """Samples of a client, and the number of its transactions."""
    data = folder / "perf.data"
    field = "polygraph" if name.startswith("polyclt") else name
    run = run_client(replace(tools, **{field: recorder(getattr(tools, field), data, folder)}), case, port, folder)
    return samples(data), run.count


def server_profile(tools, case, server, run_client, port, folder):
    """Samples of a server, and the number of its client's transactions."""
    data = folder / "perf.data"
    perf = subprocess.Popen([*PERF, data, "-p", ",".join(map(str, server.pids()))])
    time.sleep(0.5)
    run = run_client(tools, case, port, folder)
    perf.send_signal(signal.SIGINT)
    perf.wait()
    return samples(data), run.count


def text(rows):
    """A table with a column for each program, and its functions in the kernel."""
    kinds = [kind for kind, _ in KINDS] + ["other"]
    lines = ["| | " + " | ".join(rows) + " |", "|---|" + "---|" * len(rows)]
    ns = {name: 1e9 / RATE / count for name, (_, count) in rows.items()}
    for kind in kinds:
        lines.append(f"| {kind} | " + " | ".join(f"{found[1][kind] * ns[name]:,.0f}" for name, (found, _) in rows.items()) + " |")
    lines.append("| **kernel, all** | " + " | ".join(f"**{found[1].total() * ns[name]:,.0f}**" for name, (found, _) in rows.items()) + " |")
    lines.append("| user | " + " | ".join(f"{found[0] * ns[name]:,.0f}" for name, (found, _) in rows.items()) + " |")
    lines.append("| samples | " + " | ".join(f"{found[0] + found[1].total():,}" for found, _ in rows.values()) + " |")
    lines.append("")
    for name, ((_, _, functions), _) in rows.items():
        most = ", ".join(f"`{function}` {100 * n / functions.total():.1f} %" for function, n in functions.most_common(10))
        lines.append(f"* {name}: {most}.")
    return "\n".join(lines)


def h1_cases(tools, scale, wanted, port):
    """All clients and servers; of the cases that only a workload describes, the clients that can do their part."""
    for case in bench.cases(scale):
        if wanted not in case.name:
            continue
        if case.name == table.CONTENT:
            case = bench.with_requests(tools, case, port)
        clients = {name: run_client for name, run_client in CLIENTS.items() if bench.understands(name, case)}
        yield case, SERVERS[OUR_SERVERS[URING]], clients, {} if case.workload else SERVERS


def protocol_cases(scale, wanted):
    for case in protocols.cases(scale):
        if case.version != "1.1" and wanted in case.name:
            clients = {name: protocols.CLIENTS[name] for name in ("polyclt", "shb")}
            servers = {name: protocols.server_of(name, case, "wrk") for name in case.servers}
            yield case, servers["polysrv"], clients, servers


def open_loop(tools, before, ports):
    """The profile of an open loop on both engines, and of an earlier version if there is one."""
    programs = [("before", before, pace.BEFORE)] if before else []
    rows = {}
    for name, program, engine in [*programs, *((engine, tools.polygraph, engine) for engine in ENGINES)]:
        with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
            folder = Path(folder)
            data, tools_of = folder / "perf.data", replace(tools, polygraph=str(program))
            found = pace.measure_pace(tools_of, engine, next(ports), folder, recorder(str(program), data, folder))
            if "failure" in found:
                print(f"open loop, {name}: {found['failure']}")
            else:
                rows[name] = samples(data), found["count"]
    print(f"\n### open loop\n\n{text(rows)}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    target = Path(os.environ.get("CARGO_TARGET_DIR", bench.HERE.parent / "target"))
    parser.add_argument("--polygraph", default=target / "profiling/polygraph", help="the program, with symbols and TLS")
    parser.add_argument("--peers", type=Path, default=target / "bench", help="the directory of peers that are crates")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--cases", default="", help="only cases with this in their name")
    parser.add_argument("--before", type=Path, help="an earlier version, for the open loop")
    options = parser.parse_args()
    tools = bench.find_tools(str(Path(options.polygraph).resolve()), options.peers, URING)
    ports = iter(bench.PORTS)
    h1 = h1_cases(tools, options.scale, options.cases, next(ports))
    for case, make_server, clients, servers in itertools.chain(h1, protocol_cases(options.scale, options.cases)):
        rows = {}
        for name, run_client in clients.items():
            with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
                folder, port = Path(folder), next(ports)
                server = make_server(tools, case, port, folder)
                try:
                    # The bodies of a workload are not known here.
                    server.wait_until_ready(case.body or None)
                    rows[name] = client_profile(tools, case, run_client, name, port, folder)
                except Failure as failure:
                    print(f"{case.name}, {name}: {failure}")
                finally:
                    server.stop()
        for name, kind in servers.items():
            with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
                folder, port = Path(folder), next(ports)
                server = kind(tools, case, port, folder)
                run_client = clients["wrk" if "wrk" in clients else "polyclt"]
                try:
                    # nginx does not speak HTTP/1 and HTTP/2 on one port without TLS.
                    server.wait_until_ready(None if name == "nginx" and case.name == "HTTP/2, 1 KB" else case.body)
                    rows[name] = server_profile(tools, case, server, run_client, port, folder)
                except Failure as failure:
                    print(f"{case.name}, {name}: {failure}")
                finally:
                    server.stop()
        print(f"\n### {case.name}\n\n{text(rows)}\n", flush=True)
    if options.cases in "open loop":
        open_loop(tools, options.before and options.before.resolve(), ports)


if __name__ == "__main__":
    main()
