"""Results as text: a line for a measurement, tables of medians and ranges, and the page around them."""

from statistics import median
from string import Template

from clients import OURS
from ratios import EPOLL, NARROW, URING, client_limit, ratio, server_limit
from servers import OUR_SERVERS

# The load generator under which servers are judged; the others are shown too.
JUDGE = "wrk"
# Workloads that only this project's programs understand are served by this one.
WORKLOAD_SERVER = OUR_SERVERS[URING]
LATE_LIMIT_MS = 0.5


def line(record):
    """One measurement on one line."""
    head = f"{record['repeat']:2} {record['case']:18} {record['client']:13} -> {record['server']:13}"
    if "failure" in record:
        return f"{head} {record['failure']}"
    us = [f"{record[side]['user']:6.2f}+{record[side]['system']:6.2f}={record[side]['total']:6.2f}"
          for side in ("client_us", "server_us")]
    return f"{head} {record['count']:7} client {us[0]} server {us[1]} us"


def unique(values):
    return list(dict.fromkeys(values))


class Cell:
    """What one side used per transaction in all repeats of one measurement."""

    def __init__(self, results, case, client, server, side):
        mine = [r for r in results["records"] if (r["case"], r["client"], r["server"]) == (case, client, server)]
        self.samples = [record[side] for record in mine if side in record]
        self.rounds = {record["repeat"]: record[side]["total"] for record in mine if side in record}
        self.failures = unique(record["failure"] for record in mine if "failure" in record)

    def median(self, part="total"):
        return median(sample[part] for sample in self.samples)

    def __bool__(self):
        return bool(self.samples)

    def __str__(self):
        if not self:
            return "-"
        totals = [sample["total"] for sample in self.samples]
        return (f"{self.median('user'):.2f} + {self.median('system'):.2f} = **{self.median():.2f}** "
                f"({min(totals):.2f}-{max(totals):.2f})")


def verdict(ours, peers, limit):
    """Ours against the cheapest peer that could be measured and has a target: `limit` gives it for each peer."""
    peers = {name: cell for name, cell in peers.items() if cell}
    if not ours or not peers:
        return "not measured"
    judged = {name: cell for name, cell in peers.items() if limit(name) is not None}
    best = min(judged or peers, key=lambda name: peers[name].median())
    found, most = ratio(ours.rounds, peers[best].rounds), limit(best)
    if found is None:
        return "not measured"
    word = "" if most is None else "met: " if found.value <= most else "**missed**: "
    return word + found.of(best) + ("" if most is None else f", limit {most:g}")


def is_persistent(case):
    return "one-request" not in case


def client_verdicts(case, engine, ours, peers):
    """Two verdicts: that against the peers that wait as everybody does, and that against the one on io_uring."""
    def limit(peer):
        return client_limit(engine, peer, is_persistent(case))

    usual = {name: cell for name, cell in peers.items() if name != "shb"}
    return [verdict(ours, usual, limit), verdict(ours, {name: peers[name] for name in peers.keys() - usual.keys()}, limit)]


def ours_among(names):
    """Of names of clients or servers those of this project, each with its engine."""
    known = [(name, engine) for programs in (OURS, OUR_SERVERS) for engine, name in programs.items()]
    return [(name, engine) for name, engine in known if name in names]


def peers_among(names):
    return [name for name in names if not ours_among([name])]


def client_ratios(results):
    """Client and peers, and the engines of the client, on the same server."""
    cases, clients, servers = names(results)
    for case in cases:
        for server in servers:
            for ours, engine in ours_among(clients):
                rounds = Cell(results, case, ours, server, "client_us").rounds
                for peer in peers_among(clients) + [OURS[EPOLL]] * (engine == URING):
                    yield engine, "client", case, server, peer, ratio(rounds, Cell(results, case, peer, server, "client_us").rounds)


def server_ratios(results):
    """Server and peers, and the engines of the server, under the same load."""
    cases, _, servers = names(results)
    for case in cases:
        for ours, engine in ours_among(servers):
            rounds = Cell(results, case, JUDGE, ours, "server_us").rounds
            for peer in peers_among(servers) + [OUR_SERVERS[EPOLL]] * (engine == URING):
                yield engine, "server", case, JUDGE, peer, ratio(rounds, Cell(results, case, JUDGE, peer, "server_us").rounds)


def content_ratios(results):
    """The cost of content at the client against simpler cases, and against peers that receive the same."""
    clients = unique(r["client"] for r in results["records"] if r["case"] == CONTENT)
    for ours, engine in ours_among(clients):
        rounds = Cell(results, CONTENT, ours, WORKLOAD_SERVER, "client_us").rounds
        for case, client in [(CONTENT, peer) for peer in peers_among(clients)] + [(case, ours) for case in (SIZES, CONTROL)]:
            other = Cell(results, case, client, WORKLOAD_SERVER, "client_us").rounds
            peer = client if case == CONTENT else f"{client}, {case}"
            yield engine, "content", CONTENT, WORKLOAD_SERVER, peer, ratio(rounds, other)


def all_ratios(results):
    """Every ratio that is judged: engine, side, case, who it was measured against, peer, ratio."""
    found = [*client_ratios(results), *server_ratios(results), *content_ratios(results)]
    return [entry for entry in found if entry[-1] is not None]


def wide(results):
    """The cases with a ratio that is not known well enough."""
    return unique(case for _, _, case, _, _, found in all_ratios(results) if not found.narrow)


def width(results):
    """Whether the ratios are known well enough, in a sentence."""
    found = all_ratios(results)
    narrow = sum(entry[-1].narrow for entry in found)
    return f"{narrow} of {len(found)} ratios have an interval narrower than {100 * NARROW:g} %."


def rows(head, body):
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in lines)


def names(results):
    """Cases, clients and servers of what is compared with peers; workloads only this project's programs understand."""
    records = [r for r in results["records"] if not r.get("workload")]
    return [unique(r[key] for r in records) for key in ("case", "client", "server")]


def client_table(results):
    cases, clients, servers = names(results)
    ours, body = ours_among(clients), []
    for case in cases:
        for server in servers:
            cells = {client: Cell(results, case, client, server, "client_us") for client in clients}
            # The server of the other engine serves one client only, which judges it.
            if not any(cells[name] for name, _ in ours):
                continue
            peers = {name: cells[name] for name in peers_among(clients)}
            body.append([case, server, *cells.values(), *(
                cell for name, engine in ours for cell in client_verdicts(case, engine, cells[name], peers))])
    targets = [text for _, engine in ours for text in (f"{engine}: the cheapest of the others", f"{engine}: shb")]
    return rows(["case", "server", *clients, *targets], body)


def server_table(results):
    cases, clients, servers = names(results)
    ours, body = ours_among(servers), []
    for case in cases:
        for client in clients:
            cells = {server: Cell(results, case, client, server, "server_us") for server in servers}
            peers = {name: cells[name] for name in peers_among(servers)}
            judged = [verdict(cells[name], peers, lambda _: server_limit(engine, is_persistent(case))) for name, engine in ours]
            body.append([case, client, *cells.values(), *(text if client == JUDGE else f"({text})" for text in judged)])
    return rows(["case", "client", *servers, *(f"{engine}: target" for _, engine in ours)], body)


def engine_table(results):
    """What io_uring costs relative to epoll, in both programs."""
    body = [[side, case, against, f"{found.value:.2f} ({found.low:.2f}-{found.high:.2f} in {found.rounds} rounds)"]
            for _, side, case, against, peer, found in all_ratios(results) if peer in (OURS[EPOLL], OUR_SERVERS[EPOLL])]
    return rows(["side", "case", "against", "uring relative to epoll"], body)


# What content costs: a workload with all of it, and one without.
CONTENT, SIZES, CONTROL = "persistent PolyMix-4", "persistent, sizes of PolyMix-4", "persistent 9 KB, as a workload"


def content_limit(peer):
    """How much of a simpler case, or of a peer that receives the same, content may cost; `None` if there is no such target."""
    return {"wrk": 1.0}.get(peer, 1.15 if peer.endswith(CONTROL) else None)


def content_table(results):
    body = []
    for engine, _, case, server, peer, found in content_ratios(results):
        ours = Cell(results, case, OURS[engine], server, "client_us")
        client, _, other = peer.partition(", ")
        limit = content_limit(peer)
        word = "" if found is None or limit is None else "met: " if found.value <= limit else "**missed**: "
        told = "not measured" if found is None else f"{word}{found.of('that')}" + ("" if limit is None else f", limit {limit:g}")
        body.append([engine, ours, other or case, client, Cell(results, other or case, client, server, "client_us"), told])
    return rows(["engine", "PolyMix-4", "compared with", "client", "microseconds", "cost of PolyMix-4 relative to it"], body)


def pace_table(results):
    """Lateness and cost of an open loop."""
    records = [r for r in results.get("pace", []) if "failure" not in r]
    body = []
    for engine in unique(r["engine"] for r in records):
        mine = [r for r in records if r["engine"] == engine]
        late, cost = ([r[key] for r in mine] for key in ("late_p99_ms", "client_us"))
        word = "met" if median(late) <= LATE_LIMIT_MS else "**missed**"
        body.append([engine, f"{median(cost):.2f} ({min(cost):.2f}-{max(cost):.2f})", f"{median(late):.3f} ({min(late):.3f}-{max(late):.3f})",
                     f"{word}, limit {LATE_LIMIT_MS}"])
    return rows(["engine", "microseconds of the client", "99 % of starts late by at most, ms", "target"], body) if body else "Not measured."


def failures(results):
    """What could not be measured, and why."""
    found = []
    for case, client, server in unique((r["case"], r["client"], r["server"]) for r in results["records"]):
        for failure in Cell(results, case, client, server, "client_us").failures:
            found.append(f"- {case}, {client} against {server}: {failure}")
    return "\n".join(found) or "None: every measurement completed without an error and the counts agree."


COMPILER = "## Workload compiler"


def compiler_table(results):
    """What a check of a program costs, or that it was not measured."""
    if not results.get("compiler"):
        return "Not measured."
    body = []
    for record in results["compiler"]:
        times = record["cpu_ms"]
        body.append([record["program"], f"{record['bytes']:,}",
                     f"**{median(times):.2f}** ({min(times):.2f}-{max(times):.2f})"])
    return rows(["program", "bytes with included files", "processor time in milliseconds"], body)


def with_compiler(page, results):
    """The page with a fresh table in its section about the compiler, which is put at the end if there is none."""
    before, _, rest = page.partition(COMPILER + "\n")
    _, heading, after = rest.partition("\n## ")
    intro = f"{COMPILER}\n\n{compiler_intro()}\n\n{compiler_table(results)}\n"
    return f"{before.rstrip()}\n\n{intro}{heading}{after}"


def compiler_intro():
    return ("The cost of a complete check of a workload: reading, resolving names and types, evaluation, and building the\n"
            "workload. The generated programs show how the cost grows with the size.")


def tables(results):
    return "\n\n".join([client_table(results), server_table(results), engine_table(results), content_table(results), pace_table(results), failures(results), compiler_table(results)])


def page(results, template):
    machine = results["machine"]
    facts = [f"- {machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}",
             f"- {machine['polygraph']}, commit {machine['commit']}, cargo's profile `{results['profile']}`",
             *(f"- {tool}: {package}" for tool, package in machine["peers"].items())]
    return Template(template).substitute(
        machine="\n".join(facts), kernel=machine["kernel"], width=width(results), repeats=results["repeats"], connections=results["connections"], judge=JUDGE,
        clients=client_table(results), servers=server_table(results), engines=engine_table(results), content=content_table(results), pace=pace_table(results), failures=failures(results),
        compiler=f"{COMPILER}\n\n{compiler_intro()}\n\n{compiler_table(results)}")
