"""The clients: how each is told to load a server with 64 connections, and how many transactions it did."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import replay
from cpu import of_rusage
from servers import ENGINES, PATH, Failure, engine_of, logged, workload_options

CONNECTIONS = 64
REPLAY = Path(__file__).resolve().parent / "replay.lua"
# No client may run longer than this many seconds.
PATIENCE = 60


@dataclass
class Run:
    """What a client did."""

    count: int
    cpu: object
    output: str


def execute(command, folder):
    """Runs a client to its end, which `wait4` accounts for: its threads and its start included."""
    with open(folder / "client.out", "w+") as output:
        command = ["timeout", "--foreground", str(PATIENCE), *command]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        last = text.strip().splitlines()[-1:] or ["no output"]
        raise Failure(f"exit code {process.returncode}: {last[0]}")
    return of_rusage(usage), text


def number(pattern, text, default=None):
    found = re.search(pattern, text, re.MULTILINE)
    if found:
        return int(found[1])
    if default is None:
        raise Failure(f"nothing like `{pattern}` in the output")
    return default


def expect(what, value, wanted):
    if value != wanted:
        raise Failure(f"{what}: {value} instead of {wanted}")


def polyclt(engine, tools, case, port, folder):
    """This project's client with all it measures, and its log, which says how many it did: the goal is checked
    at intervals, so that they are more than asked for."""
    log = folder / "client.log"
    command = [tools.polygraph, "client", "--loops", "1", "--log", log, "--engine", engine, *(
        workload_options(case, port, case.count) if case.workload else
        ["--origin", f"127.0.0.1:{port}", "--robots", str(CONNECTIONS), "--dhr", "0",
         "--pconn_use_lmt", f"const:{case.use_limit}", "--goal", str(case.count),
         # nginx marks nothing.
         "--accept_foreign_msgs", "yes"])]
    cpu, text = execute(command, folder)
    done, errors = logged(tools, log)
    expect("errors", errors, 0)
    expect("engine", engine_of(tools, log), engine)
    return Run(done, cpu, text)


def wrk(tools, case, port, folder):
    """Runs for a time, not for a count. Requests of a workload are sent as they were recorded."""
    close = [] if case.persistent else ["-H", "Connection: close"]
    command = [tools.wrk, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(case.seconds))}s", *close, *(
        ["-s", REPLAY, f"http://127.0.0.1:{port}/", "--", replay.write_requests(case, port, folder)]
        if case.workload else [f"http://127.0.0.1:{port}{PATH}"])]
    cpu, text = execute(command, folder)
    expect("socket errors", re.findall("Socket errors.*", text), [])
    expect("bad replies", number(r"Non-2xx or 3xx responses: (\d+)", text, 0), 0)
    return Run(number(r"^ +(\d+) requests in", text), cpu, text)


def ab(tools, case, port, folder):
    keep = ["-k"] if case.persistent else []
    command = [tools.ab, "-q", "-r", "-s", "5", *keep, f"-c{CONNECTIONS}", "-n", str(case.count),
               f"http://127.0.0.1:{port}{PATH}"]
    cpu, text = execute(command, folder)
    done = number(r"^Complete requests: +(\d+)", text)
    expect("completed", done, case.count)
    expect("failed", number(r"^Failed requests: +(\d+)", text), 0)
    expect("bad replies", number(r"^Non-2xx responses: +(\d+)", text, 0), 0)
    if case.persistent:
        expect("replies that keep the connection", number(r"^Keep-Alive requests: +(\d+)", text), done)
    return Run(done, cpu, text)


def h2load(tools, case, port, folder):
    close = [] if case.persistent else ["-H", "Connection: close"]
    # Of the requests of a workload it can repeat the URLs.
    command = [tools.h2load, "--h1", "-t1", f"-c{CONNECTIONS}", "-n", str(case.count), *close, *(
        ["-i", replay.write_urls(case, port, folder)]
        if case.workload else [f"http://127.0.0.1:{port}{PATH}"])]
    cpu, text = execute(command, folder)
    done = number(r"(\d+) succeeded", text)
    expect("completed", done, case.count)
    return Run(done, cpu, text)


def shb(tools, case, port, folder):
    """The peer on io_uring."""
    close = [] if case.persistent else ["--disable-keepalive"]
    command = [tools.shb, "-t", "1", "-c", str(CONNECTIONS), "-n", str(case.count), "--json", *close,
               f"http://127.0.0.1:{port}{PATH}"]
    cpu, text = execute(command, folder)
    found = json.loads(text[text.index("{"):])
    expect("errors", found["requests"]["errors"], 0)
    expect("completed", found["statusCodes"], {"200": case.count})
    return Run(case.count, cpu, text)


# This project's client by engine.
OURS = {engine: f"polyclt {engine}" for engine in ENGINES}
CLIENTS = {OURS[engine]: partial(polyclt, engine) for engine in ENGINES} | {peer.__name__: peer for peer in (wrk, ab, h2load, shb)}
# Those that can ask for many objects: what a workload is replayed with.
REPLAYING = {"wrk", "h2load"}
