#!/usr/bin/env python3
"""What live statistics cost: processor time of runs of 10,000 robots with and without them, and of their threads.

    cargo build --release && bench/live.py [--repeats N] [--seconds N] [--robots N] [--rate N] [--program PATH]

Runs without live statistics alternate with runs that publish them to a monitor and serve metrics that are read once a second.
So many robots run in worker processes, so the process of the coordinator shows best what publishing costs: it does nothing
else but to collect statistics and to write logs. The processor time of the threads that publish is part of it.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

# Names of threads that exist only for those who watch.
THREADS = ("live", "http")


def processes_of(pid):
    """A process and its worker processes."""
    found = [pid]
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            found.append(int(path.parent.name))
    return found


def seconds_of(pid):
    """Processor time of the threads of a run that publish, of its coordinator, and of all its processes, in seconds."""
    live, coordinator, whole = 0, 0, 0
    for one in processes_of(pid):
        for task in pathlib.Path(f"/proc/{one}/task").iterdir():
            try:
                name = (task / "comm").read_text()
                # The time that the thread has run, in nanoseconds; the counts in `stat` are whole clock ticks.
                ran = int((task / "schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
            whole += ran
            coordinator += ran if one == pid else 0
            live += ran if name.startswith(THREADS) else 0
    return live * 1e-9, coordinator * 1e-9, whole * 1e-9


def read_metrics(port, stop):
    """Reads the metrics once a second until `stop` is set."""
    while not stop.wait(1):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()
        except OSError:
            pass


def measure(options, watched):
    """One run: what `seconds_of` says, in percent of a processor."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_RUNTIME_DIR=folder)
        words = [options.program, "run", "--no_proxy", "--robots", str(options.robots), "--req_rate", f"{options.rate}/sec"]
        words += ["--goal", f"{options.seconds}s", "--cool_phase", "none", "--xact_think", "const:1s", "--predict", "no"]
        words += ["--preflight", "no", "--runs", folder, "--rep_sz", "const:1KB"]
        words += ["--metrics", f"127.0.0.1:{options.port}"] if watched else ["--live", "no"]
        run = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began, stop = time.monotonic(), threading.Event()
        monitor = None
        if watched:
            monitor = subprocess.Popen([options.program, "mon", "--json"], env=environment, stdout=subprocess.DEVNULL)
            threading.Thread(target=read_metrics, args=(options.port, stop)).start()
        # The report at the end is no part of it.
        time.sleep(max(0, began + options.seconds - 1 - time.monotonic()))
        found = seconds_of(run.pid)
        took = time.monotonic() - began
        stop.set()
        run.wait()
        if monitor:
            monitor.terminate()
            monitor.wait()
        return [100 * seconds / took for seconds in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--robots", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--port", type=int, default=19190)
    parser.add_argument("--program", default="target/release/polygraph")
    options = parser.parse_args()
    kinds = {False: "without", True: "with"}
    figures = ["threads", "coordinator", "all processes"]
    found = {kind: {figure: [] for figure in figures} for kind in kinds.values()}
    for repeat in range(options.repeats):
        for watched in (False, True) if repeat % 2 == 0 else (True, False):
            values = measure(options, watched)
            for figure, value in zip(figures, values):
                found[kinds[watched]][figure].append(value)
            print(kinds[watched], *(f"{figure} {value:.2f} %" for figure, value in zip(figures, values)), sep="  ", flush=True)
    print(json.dumps({"robots": options.robots, "rate": options.rate, "percent_of_a_processor": found}, indent=2))
    for kind, of_kind in found.items():
        for figure, values in of_kind.items():
            spread = statistics.stdev(values) if len(values) > 1 else 0
            print(f"{kind:8} {figure:14} {statistics.mean(values):6.2f} % of a processor, standard deviation {spread:.2f}")


if __name__ == "__main__":
    main()
