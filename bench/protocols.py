#!/usr/bin/env python3
"""Measures what TLS, HTTP/2 and HTTP/3 cost clients and servers: processor time per transaction beside that of others, in rounds that
follow each other."""

import argparse
import datetime
import http.client
import os
import shutil
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import bench
import clients
import table
from clients import CONNECTIONS, Run, execute, expect, number
from ratios import ENGINES, append_history, creep, history_rows, ratio, read_history
from servers import KB, PATH, Failure, Nginx, Polysrv, engine_of, logged

# This project's programs, in this comparison on one engine.
OURS, OUR_SERVER = "polyclt", "polysrv"
HERE = Path(__file__).resolve().parent
WORKLOAD = HERE / "protocols.pg"
# Most of the cost of the cheapest of the others.
LIMIT = 1.10
# The engine that the program chooses if nobody says otherwise: io_uring where the host allows it.
AUTO = "auto"


@dataclass(frozen=True)
class Case:
    """A kind of traffic."""

    name: str
    clients: tuple[str, ...]
    servers: tuple[str, ...]
    count: int
    seconds: float
    body: int = 1 * KB
    version: str = "1.1"
    tls: bool = True
    persistent: bool = True
    resumed: bool = False
    # The workload with which this project's programs do it, if options cannot say it.
    workload: Path | None = None

    @property
    def use_limit(self):
        return 1_000_000 if self.persistent else 1

    def url(self, port):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{port}{PATH}"


def cases(scale):
    """So many transactions that the start of a process costs little beside them, and so few connections that client ports suffice."""
    single, many, long = int(8_000 * scale), int(500_000 * scale), 3 * scale
    both = ("polysrv", "nginx")
    return [
        Case("TLS 1.3, full handshake", ("polyclt", "s_time"), both, single, long, persistent=False),
        # wrk and h2load cannot do without sessions that they resume.
        Case("TLS 1.3, resumed session", ("polyclt", "wrk", "h2load", "s_time"), both, single, long, persistent=False, resumed=True, workload=WORKLOAD),
        Case("TLS 1.3, persistent 13 KB", ("polyclt", "wrk", "h2load", "shb"), both, many, long, body=13 * KB),
        Case("HTTP/2, 1 KB", ("polyclt", "h2load", "shb"), both, many, long, version="2", tls=False),
        Case("HTTP/2 over TLS, 1 KB", ("polyclt", "h2load", "shb"), both, many, long, version="2"),
        Case("HTTP/2 over TLS, 13 KB", ("polyclt", "h2load", "shb"), both, many, long, version="2", body=13 * KB),
        Case("HTTP/3, 1 KB", ("polyclt", "shb"), ("polysrv",), many, long, version="3"),
        Case("HTTP/3, 13 KB", ("polyclt", "shb"), ("polysrv",), many, long, version="3", body=13 * KB),
    ]


def workload_options(case, port, count):
    return ["--config", str(case.workload), "--set", f"Servers=['127.0.0.1:{port}']", "--set", f"Xactions={count}",
            "--set", f"Uses={case.use_limit}", "--set", f"Resumption={100 if case.resumed else 0}%"]


def protocol_options(case):
    return ["--http_version", case.version, *(["--tls", "yes"] if case.tls else [])]


def polyclt(tools, case, port, folder):
    """This project's client with all it measures, and its log. It must have resumed sessions, or none, as the case says."""
    log = folder / "client.log"
    command = [tools.polygraph, "client", "--loops", "1", "--log", log, "--engine", tools.engine, "--accept_foreign_msgs", "yes", *(
        workload_options(case, port, case.count) if case.workload else
        [*protocol_options(case), "--origin", f"127.0.0.1:{port}", "--robots", str(CONNECTIONS), "--dhr", "0",
         "--pconn_use_lmt", f"const:{case.use_limit}", "--goal", str(case.count)])]
    cpu, text = execute(command, folder)
    done, errors = logged(tools, log)
    expect("errors", errors, 0)
    check_engine(tools, log)
    return Run(done, cpu, text)


# What `auto` has chosen.
CHOSEN = set()


def check_engine(tools, log):
    """The engine was the wanted one; `auto` always chooses the same."""
    used = engine_of(tools, log)
    if tools.engine == AUTO:
        CHOSEN.add(used)
        expect("engines", CHOSEN, {used})
    else:
        expect("engine", used, tools.engine)


def wrk(tools, case, port, folder):
    close = [] if case.persistent else ["-H", "Connection: close"]
    cpu, text = execute([tools.wrk, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(case.seconds))}s", *close, case.url(port)], folder)
    expect("socket errors", clients.re.findall("Socket errors.*", text), [])
    return Run(number(r"^ +(\d+) requests in", text), cpu, text)


def h2load(tools, case, port, folder):
    protocol = ["--h1"] if case.version == "1.1" else []
    close = [] if case.persistent else ["-H", "Connection: close"]
    command = [tools.h2load, *protocol, "-t1", f"-c{CONNECTIONS}", "-m1", "-n", str(case.count), *close, case.url(port)]
    cpu, text = execute(command, folder)
    done = number(r"(\d+) succeeded", text)
    expect("completed", done, case.count)
    return Run(done, cpu, text)


def shb(tools, case, port, folder):
    protocol = {"1.1": [], "2": ["--http2"], "3": ["--http3"]}[case.version]
    command = [tools.shb, "-t", "1", "-c", str(CONNECTIONS), "-n", str(case.count), "--json", *protocol, case.url(port)]
    cpu, text = execute(command, folder)
    found = clients.json.loads(text[text.index("{"):])
    expect("errors", found["requests"]["errors"], 0)
    expect("completed", found["statusCodes"], {"200": case.count})
    return Run(case.count, cpu, text)


def s_time(tools, case, port, folder):
    """One connection after the other, each with a request: the program's only way. What it puts behind the path becomes a field."""
    page = f"{PATH} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nX-Rest:"
    kind = "-reuse" if case.resumed else "-new"
    command = ["openssl", "s_time", "-connect", f"127.0.0.1:{port}", "-tls1_3", "-time", str(max(1, round(case.seconds))), kind, "-www", page]
    cpu, text = execute(command, folder)
    done = number(r"^(\d+) connections in \d+ real seconds", text)
    if number(r"(\d+) bytes read per connection", text) < case.body:
        raise Failure("replies without the object")
    # With -reuse, there is one more, which begins the session.
    return Run(done + (1 if case.resumed else 0), cpu, text)


def figures(tools, log, *names):
    """Figures of a log of this project, all phases together."""
    lx = [tools.polygraph, "lx", "--json", "--phases", "all", "--objects", ",".join(names), log]
    found = clients.json.loads(subprocess.run(lx, capture_output=True, text=True, check=True).stdout)["figures"]
    return [int(found[name]) for name in names]


CLIENTS = {client.__name__: client for client in (polyclt, wrk, h2load, shb, s_time)}


class Secure:
    """What servers of this program have besides the others: TLS when somebody looks whether they are ready."""

    def connect(self):
        if not self.case.tls:
            return super().connect()
        trust_all = ssl._create_unverified_context()
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=trust_all)


class SecurePolysrv(Secure, Polysrv):
    def finish(self):
        """The client leaves when it has enough: in the middle of a handshake or of a reply on each connection."""
        self.stop()
        done, errors = logged(self.tools, self.log)
        if errors > CONNECTIONS:
            raise Failure(f"{errors} errors at the server")
        return done - self.asked

    def __init__(self, tools, case, port, folder):
        self.case, self.tools, self.log = case, tools, folder / "server.log"
        self.asked = 1
        command = [tools.polygraph, "server", "--loops", "1", "--log", self.log, "--engine", tools.engine, *protocol_options(case),
                   "--listen", f"127.0.0.1:{port}", "--rep_sz", f"const:{case.body}B", "--pconn_use_lmt", f"const:{case.use_limit}"]
        super(Polysrv, self).__init__("polysrv", command, port, folder)


class WorkloadPolysrv(SecurePolysrv):
    """The server of a workload, for this project's client."""

    def __init__(self, tools, case, port, folder):
        self.case, self.tools, self.log = case, tools, folder / "server.log"
        self.asked = 0
        command = [tools.polygraph, "server", "--loops", "1", "--log", self.log, "--engine", tools.engine,
                   *workload_options(case, port, 1_000_000_000)]
        super(Polysrv, self).__init__("polysrv", command, port, folder)


class SecureNginx(Secure, Nginx):
    def __init__(self, tools, case, port, folder):
        self.case = case
        listen = f"127.0.0.1:{port} backlog=4096{' ssl' if case.tls else ''}{' http2' if case.version == '2' else ''}"
        status = port + 10_000
        certificate = ""
        if case.tls:
            subprocess.run([tools.polygraph, "certs", "--key_type", "RSA-2048", "--name", "127.0.0.1", "--out", folder / "certs"],
                           stdout=subprocess.DEVNULL, check=True)
            certificate = f"ssl_certificate {folder}/certs/all.pem; ssl_certificate_key {folder}/certs/all.pem; ssl_protocols TLSv1.2 TLSv1.3;"
        config = folder / "nginx.conf"
        config.write_text(f"""
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.err error;
events {{ worker_connections 8192; }}
http {{
  access_log off; default_type text/plain; server_tokens off; tcp_nodelay on;
  keepalive_requests 1000000000; keepalive_timeout 60s;
  server {{
    listen {listen};
    {certificate}
    set $piece "{"x" * KB}";
    location / {{ return 200 "{"$piece" * (case.body // KB)}"; }}
  }}
  server {{ listen 127.0.0.1:{status}; location = /status {{ stub_status; }} }}
}}
""")
        self.status = status
        super(Nginx, self).__init__("nginx", [tools.nginx, "-p", folder, "-c", config], port, folder)

    def finish(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.status, timeout=5)
        connection.request("GET", "/status")
        words = connection.getresponse().read().decode().split()
        connection.close()
        self.stop()
        # The first request and this one are not the client's. HTTP/2 was looked at over HTTP/1 where that is possible.
        return int(words[words.index("requests") + 3]) - 1 - self.asked


def server_of(name, case, client):
    if name == "nginx":
        return SecureNginx
    return WorkloadPolysrv if case.workload and client == OURS else SecurePolysrv


def measure(tools, case, server_name, client_name, port):
    """One measurement as a record for the results."""
    measured = {"case": case.name, "server": server_name, "client": client_name, "workload": False}
    with bench.tempfile.TemporaryDirectory(prefix="bench-") as folder:
        folder = Path(folder)
        server = server_of(server_name, case, client_name)(tools, case, port, folder)
        try:
            # Somebody who only speaks HTTP/1 cannot look at a server of HTTP/2 without TLS, nor at the objects of a workload.
            looks = not (type(server) is WorkloadPolysrv or case.version == "2" and not case.tls and server_name == "nginx")
            server.asked = 1 if looks else 0
            server.wait_until_ready(case.body if looks else None)
            meter, begin = bench.Meter(server.pids()), time.monotonic()
            run = CLIENTS[client_name](tools, case, port, folder)
            wall = time.monotonic() - begin
            time.sleep(0.1)
            used = meter.read()
            served = server.finish()
            if not run.count - 2 * CONNECTIONS <= served <= run.count + 2 * CONNECTIONS:
                raise Failure(f"the client counts {run.count} transactions, the server {served}")
            if server_name == "polysrv":
                check_engine(tools, server.log)
                check_sessions(tools, server.log, case)
            measured |= bench.costs(run, used, served, wall)
        except Failure as failure:
            measured["failure"] = str(failure)
        finally:
            server.stop()
    return measured


def check_sessions(tools, log, case):
    """The sessions of a case are new ones, or resumed ones: its server knows."""
    if not case.tls:
        return
    full, resumed = figures(tools, log, "ssl.handshake.full.count", "ssl.handshake.resumed.count")
    # The first connections begin sessions.
    wanted = full <= 2 * CONNECTIONS if case.resumed else resumed == 0
    if not wanted:
        raise Failure(f"{full} full handshakes and {resumed} resumed ones")


def run(tools, options):
    """All measurements, in rounds through all of them."""
    ports, records, begin = iter(bench.PORTS), [], time.monotonic()
    chosen = [case for case in cases(options.scale) if any(name in case.name for name in options.cases)]
    for repeat in range(options.repeats):
        for case in chosen:
            names = [name for name in case.clients if name in options.clients]
            for server in [name for name in case.servers if name in options.servers]:
                for client in names[repeat % len(names):] + names[:repeat % len(names)]:
                    if repeat > 1 and time.monotonic() - begin > 60 * options.minutes:
                        return records
                    measured = {"repeat": repeat} | measure(tools, case, server, client, next(ports))
                    records.append(measured)
                    print(table.line(measured), flush=True)
    return records


def side_table(results, side):
    """A row for each case and what is on the other side; the limit is that of the acceptance."""
    records, body = results["records"], []
    mine, other = ("client", "server") if side == "client_us" else ("server", "client")
    ours = OURS if mine == "client" else OUR_SERVER
    peers = [name for name in table.unique(record[mine] for record in records) if name != ours]
    for case, against in table.unique((record["case"], record[other]) for record in records):
        cell = {name: table.Cell(results, case, *((name, against) if mine == "client" else (against, name)), side) for name in [ours, *peers]}
        if not any(cell[name] for name in peers):
            continue
        judged = table.verdict(cell[ours], {name: cell[name] for name in peers}, lambda _: LIMIT)
        body.append([case, against, *cell.values(), judged])
    return table.rows(["case", other, ours, *peers, "the cheapest of the others"], body)


def all_ratios(results):
    """Every ratio: side, case, who it was measured against, peer, ratio."""
    found = []
    for side, mine, other, ours in (("client", "client", "server", OURS), ("server", "server", "client", OUR_SERVER)):
        names = table.unique(record[mine] for record in results["records"])
        for case, against in table.unique((record["case"], record[other]) for record in results["records"]):
            rounds = {name: table.Cell(results, case, *((name, against) if side == "client" else (against, name)), f"{side}_us").rounds
                      for name in names}
            found += [(side, case, against, peer, ratio(rounds.get(ours, {}), rounds[peer])) for peer in names if peer != ours]
    return [entry for entry in found if entry[-1] is not None]


def engine_text(results):
    """Which engine was wanted, and which one was measured."""
    wanted, used = results["wanted"], results["engine"]
    return f"`--engine {wanted}`" + (f", which is `{used}` here" if wanted != used else "")


def page(results, template):
    machine = results["machine"]
    facts = [f"- {machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}",
             f"- {machine['polygraph']}, commit {machine['commit']}, cargo's profile `{results['profile']}`, {engine_text(results)}",
             *(f"- {tool}: {package}" for tool, package in machine["peers"].items())]
    return bench.table.Template(template).substitute(
        clients=side_table(results, "client_us"), servers=side_table(results, "server_us"), failures=table.failures(results),
        machine="\n".join(facts), repeats=results["repeats"], connections=CONNECTIONS,
        profile=(HERE / "PROTOCOLS.profile.md").read_text().strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    parser.add_argument("--polygraph", help="the program to measure, by default what cargo has built")
    parser.add_argument("--profile", default=bench.INSTALLED, help="cargo's build profile; only results of the default one are kept")
    parser.add_argument("--engine", default=AUTO, choices=[AUTO, *ENGINES],
                        help="the engine of this project's programs; by default io_uring where the host allows it")
    parser.add_argument("--repeats", type=int, default=6, help="the number of rounds")
    parser.add_argument("--minutes", type=float, default=30, help="no further measurement begins after this time")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of transactions")
    parser.add_argument("--cases", type=lambda text: text.split(";"), default=[""],
                        help="only cases with one of these in their name, separated by semicolons")
    parser.add_argument("--clients", type=lambda text: text.split(","), default=list(CLIENTS))
    parser.add_argument("--servers", type=lambda text: text.split(","), default=["polysrv", "nginx"])
    parser.add_argument("--out", type=Path, help="folder for PROTOCOLS.md and history.csv")
    parser.add_argument("--print", action="store_true", help="print the tables and write nothing")
    options = parser.parse_args()
    if options.profile != bench.INSTALLED and options.out is None:
        sys.exit(f"--profile {options.profile} is not what is installed: name a folder for its results with --out")
    if not shutil.which("openssl"):
        sys.exit("not installed: openssl; try: apt-get install -y openssl")
    tools = bench.find_tools(options.polygraph or target / options.profile / "polygraph", target / "tools", options.engine)
    records = run(tools, options)
    engine = next(iter(CHOSEN), options.engine)
    results = {"machine": bench.machine(tools), "profile": options.profile, "engine": engine, "wanted": options.engine,
               "repeats": 1 + max((record["repeat"] for record in records), default=0), "records": records}
    openssl = subprocess.run(["openssl", "version"], capture_output=True, text=True, check=True).stdout.strip()
    results["machine"]["peers"]["s_time"] = openssl
    print(side_table(results, "client_us"), side_table(results, "server_us"), table.failures(results), sep="\n\n")
    if options.print:
        return
    out = options.out or HERE
    out.mkdir(parents=True, exist_ok=True)
    (out / "PROTOCOLS.md").write_text(page(results, (HERE / "PROTOCOLS.template.md").read_text()))
    history = out / "history.csv"
    rows = history_rows(results, [(engine, *entry) for entry in all_ratios(results)], "protocols", datetime.date.today().isoformat())
    for worse in creep(read_history(history), rows):
        print(f"worse than before: {worse}")
    append_history(history, rows)


if __name__ == "__main__":
    main()
