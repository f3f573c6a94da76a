#!/usr/bin/env python3
"""An open loop: how late requests start, and what they cost, with many robots that send rarely.

As a program, this compares a version of polygraph with an earlier one: in turns, each with its own server."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from clients import execute, expect
from ratios import ENGINES, ratio
from servers import Failure, Polysrv, engine_options, logged

ROBOTS, RATE, SECONDS = 10_000, 4_000, 15


class Case:
    """What the server serves."""

    name, body, workload, use_limit = "open loop", 1024, None, 1_000_000


def measure_pace(tools, engine, port, folder, client=None):
    """Lateness in milliseconds and processor time of the client per transaction in microseconds; both sides run on `engine`. The client may
    be another program than `tools.polygraph`."""
    server = Polysrv(engine, tools, Case, port, folder)
    log = folder / "client.log"
    try:
        server.wait_until_ready(Case.body)
        command = [client or tools.polygraph, "client", "--loops", "1", "--log", log, *engine_options(engine), "--origin", f"127.0.0.1:{port}",
                   "--robots", str(ROBOTS), "--req_rate", f"{RATE}/sec", "--dhr", "0", "--goal", f"{SECONDS}s"]
        cpu, _ = execute(command, folder)
        done, errors = logged(tools, log)
        expect("errors", errors, 0)
        lx = [tools.polygraph, "lx", "--json", "--objects", "late.p99,late.p50", log]
        figures = json.loads(subprocess.run(lx, capture_output=True, text=True, check=True).stdout)["figures"]
        return {"count": done, "client_us": cpu.per(done).total, "late_p50_ms": figures["late.p50"], "late_p99_ms": figures["late.p99"]}
    except Failure as failure:
        return {"failure": str(failure)}
    finally:
        server.stop()


# An earlier version, which has one engine.
BEFORE = None


def compare(before, now, rounds, port):
    """Costs by engine and round, each version with its own server; prints every measurement."""
    costs = {}
    programs = [(BEFORE, before), *((engine, now) for engine in ENGINES)]
    for number in range(rounds):
        for offset, (engine, program) in enumerate(programs):
            with tempfile.TemporaryDirectory(prefix="pace-") as folder:
                found = measure_pace(SimpleNamespace(polygraph=program), engine, port + offset, Path(folder))
            print({"round": number, "engine": engine or "before", **found}, flush=True)
            if "failure" not in found:
                costs.setdefault(engine, {})[number] = found["client_us"]
    return costs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the program of the earlier version")
    parser.add_argument("--polygraph", type=Path, default="target/release/polygraph", help="the program of this version")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--port", type=int, default=18_450, help="the first of three")
    options = parser.parse_args()
    costs = compare(options.before.resolve(), options.polygraph.resolve(), options.rounds, options.port)
    for engine, rounds in costs.items():
        line = f"{engine or 'before'}: {statistics.median(rounds.values()):.2f} us of the client's processor time per transaction"
        if engine is not BEFORE:
            found = ratio(rounds, costs.get(BEFORE, {}))
            line += f", {found.of('before')}" if found else ""
        print(line)
    return 0 if all(len(costs.get(engine, {})) == options.rounds for engine in [BEFORE, *ENGINES]) else 1


if __name__ == "__main__":
    sys.exit(main())
