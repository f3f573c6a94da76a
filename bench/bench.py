#!/usr/bin/env python3
"""Measures the CPU time per transaction of clients and servers: every client against every server, in every
case, several times. Each measurement says what the client used and what the server used."""

import argparse
import datetime
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from clients import CLIENTS, CONNECTIONS, OURS, REPLAYING
from cpu import Meter
from pace import measure_pace
from ratios import ENGINES, URING, append_history, creep, history_rows, read_history
from replay import record
from servers import KB, OUR_SERVERS, SERVERS, Failure
import table

HERE = Path(__file__).resolve().parent
PACKAGES = {"wrk": "wrk", "ab": "apache2-utils", "h2load": "nghttp2-client", "nginx": "nginx-light"}
# Peers that Debian does not have: versions on crates.io, installed by this program into a folder of its own.
CRATES = {"shb": "0.6.0"}
# The profile of `make install`: only what users get is measured.
INSTALLED = "release"
# What the scripts in this folder write: one of them has written some of it when the next one of a `make bench` begins.
GENERATED = ("RESULTS.md", "results.json", "history.csv", "PROTOCOLS.md")
# The server of each measurement listens on a port of its own, outside the system's range of client ports,
# so that connections in TIME_WAIT of one measurement do not meet the next one.
PORTS = range(20_000, 30_000)


# The short form: what changes most often, in under three minutes.
QUICK = {"repeats": 4, "most_repeats": 14, "minutes": 2.4, "scale": 0.6, "cases": ["persistent 1 KB", "one-request"],
         "clients": [*OURS.values(), "wrk", "shb"], "servers": [OUR_SERVERS[URING]], "pace": 0}


@dataclass(frozen=True)
class Case:
    """A kind of traffic."""

    name: str
    body: int
    persistent: bool
    # Transactions of a measurement, and the time in which wrk does about as many.
    count: int
    seconds: float
    # A workload of both sides, which only this project's programs understand.
    workload: Path | None = None
    # Requests of it that peers replay.
    requests: tuple[str, ...] = ()

    @property
    def use_limit(self):
        return 1_000_000 if self.persistent else 1


def cases(scale):
    """Few enough one-request connections that client ports suffice; so many transactions that the start of a process costs
    little beside them."""
    persistent, single = int(500_000 * scale), int(30_000 * scale)
    long, short = 3 * scale, 2 * scale
    return [
        Case("persistent 1 KB", 1 * KB, True, persistent, long),
        Case("persistent 13 KB", 13 * KB, True, persistent, long),
        Case(table.SIZES, 0, True, persistent, long, HERE / "sizes.pg"),
        Case(table.CONTROL, 0, True, persistent, long, HERE / "plain.pg"),
        Case(table.CONTENT, 0, True, persistent, long, HERE / "mix.pg"),
        Case("one-request 13 KB", 13 * KB, False, single, short),
    ]


@dataclass(frozen=True)
class Tools:
    """Paths of programs."""

    polygraph: str
    wrk: str
    ab: str
    h2load: str
    nginx: str
    shb: str
    # The engine of this project's programs where only one is measured.
    engine: str = URING


def installed_crate(name, folder):
    """The program of a crate, which is built on first use."""
    root = folder / f"{name}-{CRATES[name]}"
    program = root / "bin" / name
    if not program.exists():
        subprocess.run(["cargo", "install", "--quiet", "--locked", "--root", root, "--version", CRATES[name], name], check=True)
    return str(program)


def find_tools(polygraph, folder, engine=URING):
    missing = [package for tool, package in PACKAGES.items() if not shutil.which(tool)]
    if missing:
        sys.exit(f"not installed: {' '.join(missing)}; try: apt-get install -y {' '.join(PACKAGES.values())}")
    if not os.access(polygraph, os.X_OK):
        sys.exit(f"no program at {polygraph}: build it with cargo build --release")
    crates = [installed_crate(name, folder) for name in CRATES]
    return Tools(str(Path(polygraph).resolve()), *(shutil.which(tool) for tool in PACKAGES), *crates, engine)


def first_line(*command):
    """The first line that a command prints; empty if there is none."""
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return (run.stdout.strip().splitlines() or [""])[0]


def commit(folder=HERE):
    """The commit of the tree around a folder with results, `-dirty` if anything else in it was changed."""
    git = ("git", "-C", str(folder))
    results = [f":(exclude){name}" for name in GENERATED]
    is_dirty = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ":/", *results], stderr=subprocess.DEVNULL).returncode == 1
    return first_line(*git, "describe", "--always", "--exclude=*") + ("-dirty" if is_dirty else "")


def machine(tools):
    """What the numbers depend on besides the programs."""

    def version(package):
        # Another package may bring the same program.
        return first_line("dpkg-query", "-W", "-f", "${Version}", package) or "of another package"

    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": model[1] if model else platform.machine(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "polygraph": first_line(tools.polygraph, "--version"),
        "commit": commit(),
        "peers": {tool: f"Debian package {package} {version(package)}" for tool, package in PACKAGES.items()}
        | {name: f"crate {name} {version}, built by `cargo install`" for name, version in CRATES.items()},
    }


def costs(run, used, served, wall):
    """What a measurement cost each side, in microseconds per transaction."""
    client, server = run.cpu.per(run.count), used.per(served)
    return {
        "count": run.count,
        "served": served,
        "wall_s": round(wall, 3),
        "client_us": {"user": client.user, "system": client.system, "total": client.total},
        "server_us": {"user": server.user, "system": server.system, "total": server.total},
    }


def measure(tools, case, server_name, client_name, port):
    """One measurement as a record for the results."""
    measured = {"case": case.name, "server": server_name, "client": client_name, "workload": bool(case.workload)}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        folder = Path(folder)
        server = SERVERS[server_name](tools, case, port, folder)
        try:
            server.wait_until_ready(None if case.workload else case.body)
            meter, begin = Meter(server.pids()), time.monotonic()
            run = CLIENTS[client_name](tools, case, port, folder)
            wall = time.monotonic() - begin
            # The server has to notice that the last connections were closed.
            time.sleep(0.1)
            used = meter.read()
            served = server.finish()
            # The client may stop while requests are on their way: one on each connection, and in a workload as
            # many as pages have parts. The check before a test is one more.
            slack = CONNECTIONS * (20 if case.workload else 1) + 1
            if not run.count - slack <= served <= run.count + slack:
                raise Failure(f"the client counts {run.count} transactions, the server {served}")
            measured |= costs(run, used, served, wall)
        except Failure as failure:
            measured["failure"] = str(failure)
        finally:
            server.stop()
    return measured


def with_requests(tools, case, port):
    """The case with what peers replay of it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return replace(case, requests=tuple(record(tools, case, port, Path(folder))))


def understands(client, case):
    """Whether a client can do its part of a case: that of a workload only if it can replay one that was recorded."""
    return client in OURS.values() or not case.workload or bool(case.requests) and client in REPLAYING


def servers_of(client, case, servers):
    """The servers of a client in a case: clients are compared on one server of this project and on its peers, and its other
    servers serve the client that judges them."""
    if case.workload:
        return [table.WORKLOAD_SERVER]
    return [server for server in servers if client == table.JUDGE or server not in OUR_SERVERS.values() or server == table.WORKLOAD_SERVER]


def run(tools, options):
    """All measurements. Repeats go round the whole matrix, so that what else the machine does hits all alike,
    and begin with another client each time. After the least number of repeats, only cases are repeated whose ratios are not
    known well enough, until they are, or too often or too long."""
    ports, records, begin = iter(PORTS), [], time.monotonic()
    chosen = [case for case in cases(options.scale) if any(name in case.name for name in options.cases)]
    chosen = [with_requests(tools, case, next(ports)) if case.name == table.CONTENT else case for case in chosen]
    for repeat in range(options.most_repeats):
        if repeat >= options.repeats:
            wide = table.wide({"records": records})
            # What content costs is known from all workloads together.
            chosen = [case for case in chosen if case.name in wide or case.workload and table.CONTENT in wide]
        for case in chosen:
            clients = [client for client in options.clients if understands(client, case)]
            for client in clients[repeat % len(clients):] + clients[:repeat % len(clients)]:
                for server in servers_of(client, case, options.servers):
                    if repeat > 1 and time.monotonic() - begin > 60 * options.minutes:
                        return records
                    measured = {"repeat": repeat} | measure(tools, case, server, client, next(ports))
                    records.append(measured)
                    print(table.line(measured), flush=True)
    return records


def paces(tools, options):
    """The open loop on each engine, alternating."""
    records = []
    for port, (repeat, engine) in zip(PORTS[::-1], itertools.product(range(options.pace), ENGINES)):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            records.append({"repeat": repeat, "engine": engine} | measure_pace(tools, engine, port, Path(folder)))
        print(records[-1], flush=True)
    return records


def compiler():
    """Processor time of the workload compiler: one record for each program."""
    command = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "polygraph-pgl", "--example", "bench_pgl"]
    output = subprocess.run([*command, "--", "--json"], cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in output.stdout.splitlines()]


def as_json(results):
    """Results as JSON with a line for each measurement, so that the history of the file can be read."""
    def value(item):
        return "[\n  " + ",\n  ".join(map(json.dumps, item)) + "\n ]" if isinstance(item, list) else json.dumps(item)
    return "{\n " + ",\n ".join(f"{json.dumps(name)}: {value(item)}" for name, item in results.items()) + "\n}\n"


def refresh_compiler(out):
    """Measures the compiler again and leaves all other results as they are."""
    known = out / "results.json"
    results = json.loads(known.read_text()) | {"compiler": compiler()}
    known.write_text(as_json(results))
    page = out / "RESULTS.md"
    page.write_text(table.with_compiler(page.read_text(), results))
    print(table.compiler_table(results))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    parser.add_argument("--polygraph", help="the program to measure, by default what cargo has built")
    parser.add_argument("--profile", default=INSTALLED, help="cargo's build profile; only results of the default one are kept")
    parser.add_argument("--quick", action="store_true", help="a short form for everyday use: two cases, four clients, no page; "
                        "under three minutes")
    parser.add_argument("--repeats", type=int, default=5, help="the least number of rounds")
    parser.add_argument("--most_repeats", type=int, default=20, help="the largest number of rounds, for ratios that vary")
    parser.add_argument("--minutes", type=float, default=21, help="no further measurement of ratios begins after this time")
    parser.add_argument("--pace", type=int, default=3, help="how often the open loop is measured on each engine")
    parser.add_argument("--scale", type=float, default=0.6, help="factor on the number of transactions")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=[""], help="only cases with one of these in their name")
    parser.add_argument("--clients", type=lambda text: text.split(","), default=list(CLIENTS))
    parser.add_argument("--servers", type=lambda text: text.split(","), default=list(SERVERS))
    parser.add_argument("--out", type=Path, help="folder for RESULTS.md, results.json and history.csv")
    parser.add_argument("--compiler-only", action="store_true", help="measure the workload compiler, keep the other results")
    parser.set_defaults(**(QUICK if "--quick" in sys.argv[1:] else {}))
    options = parser.parse_args()
    if options.profile != INSTALLED and options.out is None:
        sys.exit(f"--profile {options.profile} is not what is installed: name a folder for its results with --out")
    out = options.out or HERE
    if options.compiler_only:
        return refresh_compiler(out)
    tools = find_tools(options.polygraph or target / options.profile / "polygraph", target / "tools")
    # First, because it is not a part of the program that is measured, and may not build.
    compiled = [] if options.quick else compiler()
    records = run(tools, options)
    results = {"machine": machine(tools), "profile": options.profile, "pace": paces(tools, options),
               "repeats": 1 + max((record["repeat"] for record in records), default=0), "connections": CONNECTIONS, "records": records}
    out.mkdir(parents=True, exist_ok=True)
    if options.quick:
        print(table.client_table(results), table.engine_table(results), sep="\n\n")
    else:
        results["compiler"] = compiled
        (out / "results.json").write_text(as_json(results))
        (out / "RESULTS.md").write_text(table.page(results, (HERE / "RESULTS.template.md").read_text()))
        print(table.tables(results))
    print(f"\nLinux {results['machine']['kernel']}. {table.width(results)}")
    history = out / "history.csv"
    rows = history_rows(results, table.all_ratios(results), "quick" if options.quick else "full",
                        datetime.date.today().isoformat())
    for worse in creep(read_history(history), rows):
        print(f"worse than before: {worse}")
    append_history(history, rows)


if __name__ == "__main__":
    main()
