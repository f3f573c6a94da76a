#!/usr/bin/env python3
"""Measures the CPU time per transaction of clients and servers: every client against every server, in every
case, several times. Each measurement says what the client used and what the server used."""

import argparse
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
from replay import record
from servers import KB, SERVERS, Failure
import table

HERE = Path(__file__).resolve().parent
PACKAGES = {"wrk": "wrk", "ab": "apache2-utils", "h2load": "nghttp2-client", "nginx": "nginx-light"}
# The server of each measurement listens on a port of its own, outside the system's range of client ports,
# so that connections in TIME_WAIT of one measurement do not meet the next one.
PORTS = range(20_000, 30_000)


@dataclass(frozen=True)
class Case:
    """A kind of traffic."""

    name: str
    body: int
    persistent: bool
    # Transactions of a measurement, and the time in which wrk does about as many.
    count: int
    seconds: int
    # A workload of both sides, which only this project's programs understand.
    workload: Path | None = None
    # Requests of it that peers replay.
    requests: tuple[str, ...] = ()

    @property
    def use_limit(self):
        return 1_000_000 if self.persistent else 1


def cases(scale):
    """Few enough one-request connections that client ports suffice."""
    persistent, single = int(200_000 * scale), int(20_000 * scale)
    return [
        Case("persistent 1 KB", 1 * KB, True, persistent, 3),
        Case("persistent 13 KB", 13 * KB, True, persistent, 3),
        Case(table.SIZES, 0, True, persistent, 3, HERE / "sizes.pg"),
        Case(table.CONTROL, 0, True, persistent, 3, HERE / "plain.pg"),
        Case(table.CONTENT, 0, True, persistent, 3, HERE / "mix.pg"),
        Case("one-request 13 KB", 13 * KB, False, single, 2),
    ]


@dataclass(frozen=True)
class Tools:
    """Paths of programs."""

    polygraph: str
    wrk: str
    ab: str
    h2load: str
    nginx: str


def find_tools(polygraph):
    missing = [package for tool, package in PACKAGES.items() if not shutil.which(tool)]
    if missing:
        sys.exit(f"not installed: {' '.join(missing)}; try: apt-get install -y {' '.join(PACKAGES.values())}")
    if not os.access(polygraph, os.X_OK):
        sys.exit(f"no program at {polygraph}: build it with cargo build --release")
    return Tools(str(Path(polygraph).resolve()), *(shutil.which(tool) for tool in PACKAGES))


def machine(tools):
    """What the numbers depend on besides the programs."""

    def first_line(*command):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # Another package may bring the same program.
        return (run.stdout.strip().splitlines() or ["of another package"])[0]

    def version(package):
        return first_line("dpkg-query", "-W", "-f", "${Version}", package)

    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": model[1] if model else platform.machine(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "polygraph": first_line(tools.polygraph, "--version"),
        "commit": first_line("git", "-C", str(HERE), "describe", "--always", "--dirty", "--exclude=*"),
        "peers": {tool: f"{package} {version(package)}" for tool, package in PACKAGES.items()},
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
            # many as pages have parts.
            slack = CONNECTIONS * (20 if case.workload else 1)
            if not run.count - slack <= served <= run.count + slack:
                raise Failure(f"the client counts {run.count} transactions, the server {served}")
            client = run.cpu.per(run.count)
            server_cpu = used.per(served)
            measured |= {
                "count": run.count,
                "served": served,
                "wall_s": round(wall, 3),
                "client_us": {"user": client.user, "system": client.system, "total": client.total},
                "server_us": {"user": server_cpu.user, "system": server_cpu.system, "total": server_cpu.total},
            }
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
    return client == OURS or not case.workload or bool(case.requests) and client in REPLAYING


def run(tools, options):
    """All measurements. Repeats go round the whole matrix, so that what else the machine does hits all alike,
    and begin with another client each time."""
    ports, records = iter(PORTS), []
    chosen = [case for case in cases(options.scale) if options.cases in case.name]
    chosen = [with_requests(tools, case, next(ports)) if case.name == table.CONTENT else case for case in chosen]
    for repeat in range(options.repeats):
        for case in chosen:
            clients = [client for client in options.clients if understands(client, case)]
            for server in options.servers if not case.workload else [table.OUR_SERVER]:
                for client in clients[repeat % len(clients):] + clients[:repeat % len(clients)]:
                    measured = {"repeat": repeat} | measure(tools, case, server, client, next(ports))
                    records.append(measured)
                    print(table.line(measured), flush=True)
    return records


def compiler():
    """Processor time of the workload compiler: one record for each program."""
    command = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "polygraph-pgl", "--example", "bench_pgl"]
    output = subprocess.run([*command, "--", "--json"], cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in output.stdout.splitlines()]


def refresh_compiler(out):
    """Measures the compiler again and leaves all other results as they are."""
    known = out / "results.json"
    results = json.loads(known.read_text()) | {"compiler": compiler()}
    known.write_text(json.dumps(results, indent=1) + "\n")
    page = out / "RESULTS.md"
    page.write_text(table.with_compiler(page.read_text(), results))
    print(table.compiler_table(results))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    parser.add_argument("--polygraph", help="the program to measure, by default what cargo has built")
    parser.add_argument("--profile", default="release", help="cargo's build profile")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of transactions")
    parser.add_argument("--cases", default="", help="only cases with this in their name")
    parser.add_argument("--clients", type=lambda text: text.split(","), default=list(CLIENTS))
    parser.add_argument("--servers", type=lambda text: text.split(","), default=list(SERVERS))
    parser.add_argument("--out", type=Path, default=HERE, help="folder for RESULTS.md and results.json")
    parser.add_argument("--compiler-only", action="store_true", help="measure the workload compiler, keep the other results")
    options = parser.parse_args()
    if options.compiler_only:
        return refresh_compiler(options.out)
    tools = find_tools(options.polygraph or target / options.profile / "polygraph")
    results = {"machine": machine(tools), "profile": options.profile, "repeats": options.repeats, "connections": CONNECTIONS,
               "records": run(tools, options), "compiler": compiler()}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (options.out / "RESULTS.md").write_text(table.page(results, (HERE / "RESULTS.template.md").read_text()))
    print(table.tables(results))


if __name__ == "__main__":
    main()
