"""An open loop: how late requests start, and what they cost, with many robots that send rarely."""

import json
import subprocess

from clients import execute, expect
from servers import Failure, Polysrv, logged

ROBOTS, RATE, SECONDS = 10_000, 4_000, 15


class Case:
    """What the server serves."""

    name, body, workload, use_limit = "open loop", 1024, None, 1_000_000


def measure_pace(tools, engine, port, folder):
    """Lateness in milliseconds and processor time of the client per transaction in microseconds; both sides run on `engine`."""
    server = Polysrv(engine, tools, Case, port, folder)
    log = folder / "client.log"
    try:
        server.wait_until_ready(Case.body)
        command = [tools.polygraph, "client", "--loops", "1", "--log", log, "--engine", engine, "--origin", f"127.0.0.1:{port}",
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
