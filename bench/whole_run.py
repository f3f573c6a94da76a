#!/usr/bin/env python3
"""Measures what a person waits for after a long run: report, lx, ltrace, lr, export and compare of 16 logs of four
hours, in seconds, processor seconds and megabytes of memory."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# Enough for many different intervals, each as full as in a real run.
RATE, FILL, CACHE, SCALE, CYCLE = "400/sec", "200/sec", "256MB", "1/24", "5s"
LIMITS = {"seconds": 5.0, "megabytes": 200.0}


def commands(polygraph, runs, folder):
    """The commands by name, and the files with what they found."""
    one, two = runs
    figures = "time,rep_rate,baseline.rptm.mean,baseline.rptm.p95,hit.ratio,errors"
    return {
        "report": ([polygraph, "report", "--json", "--out", folder / "report.html", one], ["report.html"]),
        "lx": ([polygraph, "lx", one], []),
        "lx, one phase and figure": ([polygraph, "lx", "--phases", "top1", "--objects", "rep_rate", one], []),
        "ltrace": ([polygraph, "ltrace", "--objects", figures, one], []),
        "lr": ([polygraph, "lr", one], []),
        "lr --phase": ([polygraph, "lr", "--phase", one], []),
        "export": ([polygraph, "export", "--out", folder / "export", one], []),
        "export --format csv": ([polygraph, "export", "--format", "csv", "--out", folder / "csv", one], ["csv"]),
        "compare": ([polygraph, "compare", "--anyway", f"one={one}", f"two={two}"], []),
    }


def measure(command, files, folder):
    """Time and memory of a command, and a digest of all that it found."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdout=output, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        # The time until a command fails says nothing.
        if process.returncode:
            messages.seek(0)
            text = messages.read().decode(errors="replace").strip()
            sys.exit(f"{' '.join(map(str, command))}\nended with exit code {process.returncode}: {text}")
        output.seek(0)
        digest = hashlib.sha256(output.read())
    for name in files:
        path = folder / name
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return {"seconds": round(seconds, 2), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
            "megabytes": round(usage.ru_maxrss / 1024, 1), "digest": digest.hexdigest()[:16]}


def make_runs(polygraph, folder, hours, processes):
    """Two runs of some hours, made from two short ones that were simulated with different seeds."""
    runs = []
    for seed in (1, 2):
        short, run = folder / f"short{seed}", folder / f"run{seed}"
        if not run.exists():
            subprocess.run([polygraph, "simulate", ROOT / "workloads/polymix-4.pg", "--set", f"TheBench.peak_req_rate={RATE}",
                            "--set", f"FillRate={FILL}", "--set", f"ProxyCacheSize={CACHE}", "--set", "DnsServers=[]",
                            "--scale", SCALE, "--stats_cycle", CYCLE, "--local_rng_seed", str(seed), "--out", short],
                           check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["cargo", "run", "--quiet", "--release", "--locked", "-p", "polygraph-stats", "--example", "long_logs", "--",
                            run, str(hours), str(processes), short / "client.log", short / "server.log"], cwd=ROOT, check=True)
        runs.append(run)
    return runs


def row(name, found):
    missed = [unit for unit, limit in LIMITS.items() if found[unit] > limit]
    return (f"| `{name}` | {found['seconds']:.1f} | {found['cpu_seconds']:.1f} | {found['megabytes']:.0f} | "
            f"{'met' if not missed else '**missed**: ' + ', '.join(missed)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--polygraph", type=Path, default=target / "release/polygraph", help="the program to measure")
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--logs", type=Path, help="folder that keeps the logs for the next time")
    parser.add_argument("--only", default="", help="only commands with this in their name")
    parser.add_argument("--json", type=Path, help="file for the figures, with digests of everything that was found")
    options = parser.parse_args()
    polygraph = options.polygraph.resolve()
    if not os.access(polygraph, os.X_OK):
        sys.exit(f"no program at {polygraph}: build it with make; `export` needs Parquet")
    with tempfile.TemporaryDirectory(prefix="whole-run-") as place:
        place = Path(place)
        runs = make_runs(polygraph, options.logs or place, options.hours, options.processes)
        size = sum(log.stat().st_size for log in runs[0].glob("*.log"))
        print(f"{options.processes} logs of {options.hours:g} hours, {size / 1e6:,.0f} MB\n")
        print("| command | seconds | processor seconds | MB | under 5 s and 200 MB |\n|---|---|---|---|---|")
        results = {}
        for name, (command, files) in commands(polygraph, runs, place).items():
            if options.only in name:
                results[name] = measure(command, files, place)
                print(row(name, results[name]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
