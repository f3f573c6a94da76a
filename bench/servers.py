"""The servers: this project's and nginx, both with one loop or worker, both answering any client with the
same number of body bytes from memory."""

import http.client
import json
import re
import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path

from ratios import ENGINES

# An object of the benchmark: this project's server answers no other URLs, nginx answers all.
PATH = "/w12345678.00abcdef:0000002a/t03/_00000000000001f4"
KB = 1024
WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"


class Failure(Exception):
    """A measurement that does not count, and why."""


def logged(tools, log):
    """Transactions and errors in a log of this project, all phases together."""
    lx = [tools.polygraph, "lx", "--json", "--phases", "all", "--objects", "rep.rptm.count,err_cnt", log]
    output = subprocess.run(lx, capture_output=True, text=True, check=True).stdout
    figures = json.loads(output)["figures"]
    return int(figures["rep.rptm.count"]), int(figures["err_cnt"])


def engine_of(tools, log):
    """The engine that a log names."""
    text = subprocess.run([tools.polygraph, "lr", log], capture_output=True, text=True, check=True).stdout
    settings = text.partition("\nsettings:\n")[2].partition("\nphases:\n")[0]
    found = re.search(r"^  engine: (\S+)", settings, re.MULTILINE)
    return found[1] if found else None


def engine_options(engine):
    """None for an earlier version, which has one engine."""
    return ["--engine", engine] if engine else []


class Server:
    """A server process that is listening and has answered once."""

    def __init__(self, name, command, port, folder):
        self.name, self.port, self.folder = name, port, folder
        self.output = open(folder / f"{name}.out", "w")
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT)

    def pids(self):
        """The process and its workers."""
        main = self.process.pid
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        return [main, *map(int, children)]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)

    def get(self, path):
        connection = self.connect()
        try:
            connection.request("GET", path, headers={"Connection": "close"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def wait_until_ready(self, body_size):
        """The first reply also warms up what a server does only once. Without a size nothing is asked for."""
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise Failure(f"{self.name} does not listen") from None
                time.sleep(0.02)
        if body_size is None:
            return
        status, body = self.get(PATH)
        if (status, len(body)) != (200, body_size):
            raise Failure(f"{self.name} answers {status} with {len(body)} bytes of body")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.output.close()


def workload_options(case, port, count):
    """What tells both sides of a workload, and where they meet."""
    return ["--config", str(case.workload), "--cfg_dirs", str(WORKLOADS / "include"),
            "--set", f"Servers=['127.0.0.1:{port}']", "--set", f"Xactions={count}"]


class Polysrv(Server):
    """This project's server with its log."""

    def __init__(self, engine, tools, case, port, folder):
        self.tools, self.log, self.engine = tools, folder / "server.log", engine
        self.asked = 0 if case.workload else 1
        command = [tools.polygraph, "server", "--loops", "1", "--log", self.log, *engine_options(engine), *(
            workload_options(case, port, 1_000_000_000) if case.workload else
            ["--listen", f"127.0.0.1:{port}", "--rep_sz", f"const:{case.body}B",
             "--pconn_use_lmt", f"const:{case.use_limit}"])]
        super().__init__("polysrv", command, port, folder)

    def finish(self):
        """Stops the server and returns how many transactions it counted, that of the start aside."""
        self.stop()
        if engine_of(self.tools, self.log) != self.engine:
            raise Failure(f"the server does not run on {self.engine}")
        done, errors = logged(self.tools, self.log)
        # The client leaves when it has enough, maybe in the middle of a long reply.
        if errors and self.asked:
            raise Failure(f"{errors} errors at the server")
        return done - self.asked


class Nginx(Server):
    def __init__(self, tools, case, port, folder):
        # One word of the configuration holds less than 4 KB, so the body is put together from pieces. That
        # costs less than serving a file from the page cache, with or without sendfile and open_file_cache.
        pieces, rest = divmod(case.body, KB)
        assert rest == 0, "bodies are whole kilobytes"
        config = folder / "nginx.conf"
        config.write_text(f"""
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.err error;
events {{ worker_connections 8192; }}
http {{
  access_log off; default_type text/plain; server_tokens off; tcp_nodelay on;
  keepalive_requests 1000000000; keepalive_timeout 60s;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    set $piece "{"x" * KB}";
    location / {{ return 200 "{"$piece" * pieces}"; }}
    location = /status {{ stub_status; }}
  }}
}}
""")
        super().__init__("nginx", [tools.nginx, "-p", folder, "-c", config], port, folder)

    def finish(self):
        """Stops the server and returns how many transactions it counted, the first and this one aside."""
        status = self.get("/status")[1].decode().split()
        self.stop()
        # The third number after the words "server accepts handled requests".
        return int(status[status.index("requests") + 3]) - 2


# This project's server by engine.
OUR_SERVERS = {engine: f"polysrv {engine}" for engine in ENGINES}
SERVERS = {OUR_SERVERS[engine]: partial(Polysrv, engine) for engine in ENGINES} | {"nginx": Nginx}
