#!/usr/bin/env python3
"""Measures how well `polygraph compare` tells devices apart: rounds of three runs, of two equal devices and of one
that is slower by a known share, counted as found or not found. Writes nothing; prints a line per round and a table.

A round's runs go on at the same time, so that whatever else the machine does hits all three alike; with --apart one
after the other. Seeds differ from round to round and are equal within one, as they are for people who compare."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

FIGURE = "baseline.rptm.mean"


def start(program, directory, name, port, seed, options):
    """A run through a built-in proxy that adds a service time."""
    share = 1 + options.slower / 100 if name == "slow" else 1
    mean = options.mean * share
    command = [
        program, "run", "--device", "builtin",
        "--device_opt", f"listen=127.0.0.1:{port}",
        "--device_opt", f"service_time=norm:{mean:.3f}ms,{mean / 10:.3f}ms",
        "--xact_think", "none", "--req_rate", f"{options.rate}/sec", "--goal", f"{options.seconds}s",
        "--cool_phase", "1s", "--loops", "1", "--predict", "no", "--label", name,
        "--global_rng_seed", str(seed), "--local_rng_seed", str(seed),
    ]
    log = open(directory / f"{name}.out", "w")
    return subprocess.Popen(command, cwd=directory, stdout=log, stderr=subprocess.STDOUT)


def compare(program, directory, one, two, anyway):
    """The comparison as JSON, or `None` if the trust rules refuse it."""
    runs = [str(run) for name in [one, two] for run in directory.glob(f"runs/{name}*")]
    command = [program, "compare", "--json", *(["--anyway"] if anyway else []), *runs]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def slower(result):
    """The change of the mean response time: its verdict, percent and interval."""
    figures = result["parts"][0]["figures"]
    return next(figure for figure in figures if figure["name"] == FIGURE)["changes"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/polygraph")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--mean", type=float, default=400, help="service time in ms; its deviation is a tenth")
    parser.add_argument("--slower", type=float, default=5, help="percent")
    parser.add_argument("--rate", type=int, default=150, help="requests per second")
    parser.add_argument("--seconds", type=int, default=12)
    parser.add_argument("--port", type=int, default=18_400, help="the first of three")
    parser.add_argument("--apart", action="store_true", help="one run after the other")
    options = parser.parse_args()
    program = str(Path(options.program).resolve())
    refused, equal, found = 0, 0, 0
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory(prefix="polygraph-compare-") as name:
            directory = Path(name)
            runs = []
            for offset, run in enumerate(["one", "two", "slow"]):
                runs.append(start(program, directory, run, options.port + offset, number, options))
                if options.apart:
                    runs[-1].wait(timeout=10 * options.seconds + 60)
            for run in runs:
                run.wait(timeout=10 * options.seconds + 60)
            same = compare(program, directory, "one", "two", False)
            other = compare(program, directory, "one", "slow", False)
            # What the figures say although the rules refuse: told, and counted apart.
            trusted = same is not None and other is not None
            same = same or compare(program, directory, "one", "two", True)
            other = other or compare(program, directory, "one", "slow", True)
            if same is None or other is None:
                sys.exit("\n".join((directory / f"{run}.out").read_text() for run in ["one", "two", "slow"]))
        change = slower(other)
        refused += not trusted
        equal += same["found"] == 0
        right = change["verdict"] == "worse" and abs(change["percent"] - options.slower) < options.slower / 2
        found += right
        print(f"round {number}: trusted {trusted}, equal devices: {same['found']} differences, slower one: "
              f"{change['verdict']}, {change['percent']:+.2f} % ({change})", flush=True)
    print(f"{options.rounds} rounds, {refused} with a run that the trust rules refuse: equal devices without a "
          f"difference in {equal}, {options.slower} % found with sign and size in {found}")


if __name__ == "__main__":
    main()
