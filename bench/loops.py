#!/usr/bin/env python3
"""What a second loop costs: processor time per transaction of one process with one loop, of two processes with one loop each, which can
share nothing, and of one process with two loops.

    make all && bench/loops.py

If loops shared cache lines during a transaction, user time of one process with two loops would be higher than that of two processes. The
kernel's time also depends on which loops talk to each other: two pairs of processes have one peer for each loop, while two loops talk to
both loops of the other side."""

import argparse
import contextlib
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from clients import execute, expect
from cpu import Cpu, of_processes
from ratios import ENGINES, ratio
from servers import Failure, Server, logged

CONNECTIONS, TRANSACTIONS = 64, 400_000
# Pairs of a client and a server, and the loops of each process.
ONE, PAIRS, LOOPS = (1, 1), (2, 1), (1, 2)
SHAPES = {ONE: "one process, one loop", PAIRS: "two processes, one loop each", LOOPS: "one process, two loops"}
SIDES = ["client", "server"]


def measure(program, engine, shape, port, folder):
    """User and system time per transaction of each side."""
    pairs, loops = shape
    common = ["--loops", str(loops), "--engine", engine, "--pconn_use_lmt", "const:1000000000"]
    servers, clients = [], []
    with contextlib.ExitStack() as stack:
        for number in range(pairs):
            own, address = folder / str(number), f"127.0.0.1:{port + number}"
            own.mkdir()
            command = [program, "server", *common, "--listen", address, "--rep_sz", "const:1KB", "--log", own / "server.log"]
            servers.append(Server("polysrv", command, port + number, own))
            stack.callback(servers[-1].stop)
            servers[-1].wait_until_ready(None)
            clients.append(([program, "client", *common, "--origin", address, "--robots", str(CONNECTIONS // pairs), "--dhr", "0",
                             "--goal", str(TRANSACTIONS // pairs), "--log", own / "client.log"], own))
        with ThreadPoolExecutor() as pool:
            at_clients = [cpu for cpu, _ in pool.map(lambda client: execute(*client), clients)]
        at_servers = [of_processes(server.pids()) for server in servers]
    done, errors = map(sum, zip(*(logged(SimpleNamespace(polygraph=program), own / "client.log") for _, own in clients)))
    expect("errors", errors, 0)
    return {side: sum(used, Cpu()).per(done) for side, used in zip(SIDES, (at_clients, at_servers))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polygraph", type=Path, default="target/release/polygraph")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--port", type=int, default=21_000, help="the first of two for each measurement")
    options = parser.parse_args()
    program, port = str(options.polygraph.resolve()), options.port
    for engine in ENGINES:
        found = {shape: {} for shape in SHAPES}
        for number in range(options.rounds):
            # Another order in each round: neighbours on a shared machine change slowly.
            for shape in sorted(SHAPES, key=lambda shape: (list(SHAPES).index(shape) + number) % len(SHAPES)):
                with tempfile.TemporaryDirectory(prefix="loops-") as folder:
                    try:
                        found[shape][number] = measure(program, engine, shape, port, Path(folder))
                    except Failure as failure:
                        print(f"{engine}, {SHAPES[shape]}: {failure}")
                port += 2
        for side in SIDES:
            for shape, rounds in found.items():
                print(f"{engine}, {side}, {SHAPES[shape]}: " + " + ".join(
                    f"{statistics.median(getattr(cpu[side], kind) for cpu in rounds.values()):.2f}" for kind in ("user", "system")) + " us")
            for kind in ("user", "system", "total"):
                costs = ({number: getattr(cpu[side], kind) for number, cpu in found[shape].items()} for shape in (LOOPS, PAIRS))
                print(f"{engine}, {side}, two loops, {kind} time: {ratio(*costs).of('two processes')}")
        print(flush=True)


if __name__ == "__main__":
    main()
