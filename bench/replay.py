"""What peers send in a case that only a workload describes: the requests that this project's client sent in a
run of its own. Peers do not know what they ask for, and compare nothing, but get the same replies."""

import itertools
import re
import subprocess

from servers import ENGINES, Failure, Polysrv, workload_options

# So many transactions are recorded: objects of rare kinds should be there in the right number.
RECORDED = 20_000
# What stands for the port of the server in recorded requests.
PORT = "{port}"
# A header field: no space in its name.
FIELD = re.compile(r"[!-9;-~]+:")


def heads(shown, port):
    """Heads of requests without a body, from what `--dump req` shows."""
    # Each line of the console begins with the time.
    shown = re.sub(r"^[0-9.]+\| ?", "", shown, flags=re.MULTILINE)
    found = re.split(r"^dump: .*\n", shown, flags=re.MULTILINE)[1:]
    lines = (text.split("\n\n")[0].splitlines() for text in found)
    # What the console says next may follow the last head without an empty line.
    fields = ([head[0], *itertools.takewhile(FIELD.match, head[1:])] for head in lines if head)
    wanted = [head for head in fields if head[0].startswith("GET ")]
    return ["\r\n".join(head).replace(f":{port}", f":{PORT}") + "\r\n\r\n" for head in wanted]


def record(tools, case, port, folder):
    """The requests of a workload's client, in the order in which their transactions ended."""
    server = Polysrv(ENGINES[0], tools, case, port, folder)
    try:
        server.wait_until_ready(None)
        # Few messages are shown in each interval, so intervals are short.
        command = [tools.polygraph, "client", "--loops", "1", "--log", folder / "recorded.log", "--dump", "req",
                   "--stats_cycle", "20ms", *workload_options(case, port, RECORDED)]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    finally:
        server.stop()
    requests = heads(run.stdout, port)
    if run.returncode != 0 or len(requests) < RECORDED * 0.9:
        raise Failure(f"{len(requests)} requests of {case.name} were recorded, exit code {run.returncode}")
    return requests


def write_requests(case, port, folder):
    """A file with the requests of a case, as they are sent to `port`."""
    path = folder / "requests.txt"
    path.write_text("".join(case.requests).replace(PORT, str(port)), newline="")
    return path


def write_urls(case, port, folder):
    """A file with URLs of a case. Those of conditional requests are left out: without their condition their
    replies would be larger than they were."""
    path = folder / "urls.txt"
    plain = [head for head in case.requests if "If-Modified-Since" not in head]
    path.write_text("".join(f"http://127.0.0.1:{port}{head.split()[1]}\n" for head in plain))
    return path
