#!/usr/bin/env python3
"""What a second loop costs: processor time per transaction of one process with one loop, of two processes with one loop each, which can
share nothing, and of one process with two loops.

    make all && bench/loops.py

If loops shared cache lines during a transaction, user time of one process with two loops would be higher than that of two processes. The
kernel's time also depends on which loops talk to each other: two pairs of processes have one peer for each loop, while two loops talk to
both loops of the other side."""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from clients import PATIENCE
from cpu import Cpu, of_processes, of_rusage
from ratios import ENGINES, ratio
from servers import Failure, logged

CONNECTIONS, TRANSACTIONS = 64, 400_000
# Pairs of a client and a server, and the loops of each process.
ONE, PAIRS, LOOPS = (1, 1), (2, 1), (1, 2)
SHAPES = {ONE: "one process, one loop", PAIRS: "two processes, one loop each", LOOPS: "one process, two loops"}
SIDES = ["client", "server"]


def start(program, side, loops, engine, address, pairs, folder):
    options = {"server": ["--listen", address, "--rep_sz", "const:1KB"],
               "client": ["--origin", address, "--robots", str(CONNECTIONS // pairs), "--dhr", "0", "--goal", str(TRANSACTIONS // pairs)]}
    log = folder / f"{side}-{address}.log"
    limit = {"client": ["timeout", "--foreground", str(PATIENCE)], "server": []}
    command = [*limit[side], program, side, "--loops", str(loops), "--engine", engine, "--pconn_use_lmt", "const:1000000000", "--log", log, *options[side]]
    return log, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stop(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def measure(program, engine, shape, port, folder):
    """User and system time per transaction of each side."""
    pairs, loops = shape
    addresses = [f"127.0.0.1:{port + number}" for number in range(pairs)]
    with contextlib.ExitStack() as stack:
        running = {}
        for side in reversed(SIDES):
            running[side] = [start(program, side, loops, engine, address, pairs, folder) for address in addresses]
            for _, process in running[side]:
                stack.callback(stop, process)
            time.sleep(0.7)
        used = {side: Cpu() for side in SIDES}
        for _, process in running["client"]:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise Failure(f"the client ends with exit code {process.returncode}")
            used["client"] += of_rusage(usage)
        used["server"] = of_processes([process.pid for _, process in running["server"]])
    done, errors = map(sum, zip(*(logged(SimpleNamespace(polygraph=program), log) for log, _ in running["client"])))
    if errors:
        raise Failure(f"{errors} errors")
    return {side: used[side].per(done) for side in SIDES}


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
