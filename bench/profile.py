#!/usr/bin/env python3
"""Where the time of a transaction goes: user nanoseconds per stage, and the kernel's functions, of the client and the server.

    cargo build --profile profiling --locked && bench/profile.py

Needs `perf` and `llvm-symbolizer`. Samples are taken by the clock of the processor, so they tell time, and need no hardware
counters. A sample belongs to the innermost function, inlined ones included, whose file belongs to a stage. Copies and
allocations in the C library cannot be attributed to their callers; they are stages of their own."""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import PORTS, Tools, cases
from clients import CONNECTIONS
from ratios import URING
from servers import Polysrv, logged, workload_options
import table

HERE = Path(__file__).resolve().parent
RATE = 4_999

# The first pattern that occurs in the path of a source file decides.
STAGES = [
    ("pacing", ["robot/src/load", "robot/src/robot.rs", "engine/src/timers", "engine/src/pacer"]),
    ("request choice", ["robot/src/request/generator", "robot/src/request/universe", "robot/src/request.rs", "robot/src/context.rs",
                        "traffic/src/world", "traffic/src/popularity", "traffic/src/rng", "traffic/src/distr", "traffic/src/selector",
                        "traffic/src/table", "traffic/src/id.rs", "traffic/src/request", "traffic/src/object", "traffic/src/content"]),
    ("head", ["robot/src/request/encode", "wire/src/decimal", "wire/src/date", "traffic/src/headers", "robot/src/transaction/identity",
              "origin/src/reply_head"]),
    ("send", ["robot/src/exchange/send", "rustix/src/net", "rustix-1", "origin/src/reply.rs"]),
    ("head parse", ["httparse", "wire/src/head", "wire/src/marks", "wire/src/target", "wire/src/worlds", "wire/src/body", "wire/src/url",
                    "wire/src/uri", "robot/src/exchange/reply", "origin/src/request"]),
    ("body compare", ["robot/src/exchange/entity", "robot/src/exchange/comparison", "robot/src/exchange/links", "wire/src/markup",
                      "traffic/src/body", "traffic/src/life"]),
    ("judge", ["robot/src/judge", "origin/src/object_lookup"]),
    ("record", ["robot/src/record", "stats/src", "origin/src/record"]),
    ("follow-ups", ["robot/src/transaction/follow", "robot/src/transaction/workers", "robot/src/request/page"]),
    ("connections", ["robot/src/connections"]),
    ("transaction", ["robot/src/transaction.rs", "robot/src/exchange.rs", "robot/src/exchange/receive", "robot/src/group.rs",
                     "origin/src/server.rs"]),
    ("wake and poll", ["tokio", "mio", "engine/src/socket", "engine/src/deadlines", "engine/src/poller", "engine/src/loop_state",
                       "engine/src/net.rs", "uring/src", "io-uring", "async-task", "link/src", "engine/src"]),
]
LIBC = [("copies (libc)", ["memcpy", "memmove", "memset", "memcmp", "mempcpy"]),
        ("allocation (libc)", ["malloc", "free", "calloc", "realloc", "cfree", "_int_", "tcache", "unlink_chunk", "sysmalloc", "arena"]),
        ("system calls (libc)", ["epoll", "syscall", "send", "recv", "connect", "close", "socket", "accept", "__errno", "cancel"]),
        ("clock", ["clock_gettime", "__vdso", "vdso"])]


def stage_of(frames):
    """The stage of a sample from its functions and files, innermost first."""
    for _, path in frames:
        for stage, patterns in STAGES:
            if any(pattern in path for pattern in patterns):
                return stage
    return "other"


def stage_of_library(symbol, dso):
    if "vdso" in dso:
        return "clock"
    for stage, patterns in LIBC:
        if any(pattern in symbol for pattern in patterns):
            return stage
    return "other"


def samples(data):
    """How often each place was seen: (address, symbol, object) of user code, and symbols of the kernel."""
    text = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,symoff,dso"], capture_output=True, text=True, check=True).stdout
    user, kernel = collections.Counter(), collections.Counter()
    for line in text.splitlines():
        address, _, rest = line.strip().partition(" ")
        symbol, _, dso = rest.rpartition(" (")
        symbol, dso = symbol.strip(), dso.rstrip(")")
        if int(address, 16) >> 63:
            kernel[symbol.partition("+")[0]] += 1
        else:
            user[int(address, 16), symbol.partition("+")[0], dso] += 1
    return user, kernel


def symbolized(program, addresses):
    """Functions and files of each address, innermost first."""
    command = ["llvm-symbolizer", f"--obj={program}", "--inlines", "--output-style=JSON"]
    text = subprocess.run(command, input="\n".join(hex(address) for address in addresses), capture_output=True, text=True, check=True).stdout
    found = {}
    for address, line in zip(addresses, text.splitlines()):
        found[address] = [(frame["FunctionName"], frame["FileName"]) for frame in json.loads(line).get("Symbol", [])]
    return found


def load_base(program):
    """The difference between addresses in the file and offsets in it, of the part with code; `perf` prints addresses in memory
    unless it knows the mapping, so the mapping is taken from the recording."""
    text = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == ["LOAD"] and "E" in "".join(fields[6:-1]):
            return int(fields[1], 16), int(fields[2], 16)
    sys.exit("no code in the program")


def mapping(data, program):
    """Where the program's code was mapped: address in memory, and offset in the file."""
    text = subprocess.run(["perf", "script", "-i", data, "--show-mmap-events", "-F", "comm"], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        if "PERF_RECORD_MMAP" in line and line.rstrip().endswith(str(program)) and "xp " in line:
            inside = line[line.index("[", line.index(": ")) + 1:line.index("]")]
            start = int(inside.partition("(")[0], 16)
            offset = int(inside.partition("@")[2].split()[0], 16)
            return start, offset
    sys.exit("the program's code is not in the recording")


def profile(data, program, count, user_us, system_us):
    """User nanoseconds per transaction by stage, functions with most user time, and shares of the kernel's functions."""
    user, kernel = samples(data)
    (start, offset), (file_offset, file_address) = mapping(data, program), load_base(program)
    own = {at: at - start + offset - file_offset + file_address for at, _, dso in user if dso == str(program)}
    known = symbolized(program, sorted(set(own.values())))
    stages, functions = collections.Counter(), collections.Counter()
    for (address, symbol, dso), n in user.items():
        frames = known.get(own.get(address), [])
        stage = stage_of(frames) if frames else stage_of_library(symbol, dso)
        stages[stage] += n
        functions[(stage, frames[0][0] if frames else symbol)] += n
    total = sum(stages.values()) or 1
    ns = 1000 * user_us / total
    all_kernel = sum(kernel.values()) or 1
    return {"user_us": user_us, "system_us": system_us, "samples": total, "count": count,
            "stages": {stage: n * ns for stage, n in stages.most_common()},
            "functions": [(stage, name, n * ns) for (stage, name), n in functions.most_common(40)],
            "kernel": [(name, n / all_kernel) for name, n in kernel.most_common(25)]}


def run(tools, engine, case, side, port, folder):
    """A profile of one side in one case."""
    data = folder / "perf.data"
    perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "-o", str(data), "--"]
    server = Polysrv(engine, tools, case, port, folder)
    try:
        server.wait_until_ready(None if case.workload else case.body)
        log = folder / "client.log"
        command = [tools.polygraph, "client", "--loops", "1", "--log", str(log), "--engine", engine, *(
            workload_options(case, port, case.count) if case.workload else
            ["--origin", f"127.0.0.1:{port}", "--robots", str(CONNECTIONS), "--dhr", "0",
             "--pconn_use_lmt", f"const:{case.use_limit}", "--goal", str(case.count)])]
        recorder = None
        if side == "server":
            recorder = subprocess.Popen([*perf[:-1], "-p", str(server.process.pid)])
            time.sleep(0.5)
            before = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        output = open(folder / "client.out", "w")
        process = subprocess.Popen(command if recorder else [*perf, *command], stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if recorder:
            after = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            recorder.send_signal(2)
            recorder.wait()
        if process.returncode:
            sys.exit((folder / "client.out").read_text()[-2000:])
        count, _ = logged(tools, log)
        if recorder:
            user, system = ((int(a) - int(b)) * 1e4 / count for a, b in zip(after, before))
        else:
            # The time of `perf` itself is in the sum, so samples count: each is a tick of the clock.
            seen, kernel = samples(data)
            user, system = (sum(found.values()) * 1e6 / RATE / count for found in (seen, kernel))
        return profile(data, Path(tools.polygraph), count, user, system)
    finally:
        server.stop()


def text(results):
    """Markdown: a table of stages, and lists of kernel functions."""
    names = list(results)
    stages = [stage for stage, _ in STAGES] + [stage for stage, _ in LIBC] + ["other"]
    lines = ["| stage | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for stage in stages:
        cells = [(results[name]["stages"].get(stage, 0.0), sum(results[name]["stages"].values())) for name in names]
        if any(ns > 0.5 for ns, _ in cells):
            lines.append(f"| {stage} | " + " | ".join(f"{ns:.0f} ({100 * ns / (total or 1):.0f} %)" for ns, total in cells) + " |")
    lines.append("| **user, all** | " + " | ".join(f"**{1000 * results[n]['user_us']:.0f}**" for n in names) + " |")
    lines.append("| kernel, all | " + " | ".join(f"{1000 * results[n]['system_us']:.0f}" for n in names) + " |")
    lines.append("")
    for name in names:
        kernel = results[name]
        shares = ", ".join(f"`{function}` {100 * share:.1f} %" for function, share in kernel["kernel"][:14])
        lines.append(f"* {name}, kernel: {shares}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    parser.add_argument("--polygraph", default=target / "profiling/polygraph")
    parser.add_argument("--engine", default=URING, help="the engine of both sides")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=["1 KB", "13 KB", "PolyMix-4", "one-request"])
    parser.add_argument("--sides", type=lambda text: text.split(","), default=["client", "server"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--port", type=int, default=PORTS[-1] - 200)
    options = parser.parse_args()
    tools = Tools(str(Path(options.polygraph).resolve()), *5 * [""])
    for side in options.sides:
        results = {}
        for number, case in enumerate(cases(options.scale)):
            if not any(name in case.name for name in options.cases) or case.name == table.SIZES:
                continue
            with tempfile.TemporaryDirectory(prefix="profile-") as folder:
                results[case.name] = run(tools, options.engine, case, side, options.port + number + 20 * (side == "server"), Path(folder))
        print(f"\n## {side}\n\n{text(results)}\n", flush=True)
        if options.json:
            Path(f"{options.json}.{side}.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
