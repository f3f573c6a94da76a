"""Results as text: a line for a measurement, tables of medians and ranges, and the page around them."""

from statistics import median
from string import Template

from clients import OURS
from ratios import NARROW, ONLY_ENGINE, client_limit, ratio, server_limit

OUR_SERVER = "polysrv"
# The load generator under which servers are judged; the others are shown too.
JUDGE = "wrk"


def line(record):
    """One measurement on one line."""
    head = f"{record['repeat']} {record['case']:18} {record['client']:8} -> {record['server']:8}"
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


def client_verdicts(results, case, ours, peers):
    """Two verdicts: that against the peers that wait as everybody does, and that against the one on io_uring."""
    def limit(peer):
        return client_limit(results.get("engine", ONLY_ENGINE), peer, "one-request" not in case)

    usual = {name: cell for name, cell in peers.items() if name != "shb"}
    return [verdict(ours, usual, limit), verdict(ours, {name: peers[name] for name in peers.keys() - usual.keys()}, limit)]


def all_ratios(results):
    """Every ratio that is judged: side, case, who it was measured against, peer, ratio."""
    cases, clients, servers = names(results)
    found = []
    for case in cases:
        for server in servers:
            ours = Cell(results, case, OURS, server, "client_us")
            for peer in clients:
                if peer != OURS:
                    found.append(("client", case, server, peer, ratio(ours.rounds, Cell(results, case, peer, server, "client_us").rounds)))
        for peer in servers:
            if peer != OUR_SERVER and JUDGE in clients:
                ours = Cell(results, case, JUDGE, OUR_SERVER, "server_us")
                found.append(("server", case, JUDGE, peer, ratio(ours.rounds, Cell(results, case, JUDGE, peer, "server_us").rounds)))
    return [entry for entry in found if entry[-1] is not None]


def wide(results):
    """The cases with a ratio that is not known well enough."""
    return unique(case for _, case, _, _, found in all_ratios(results) if not found.narrow)


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
    body = []
    for case in cases:
        for server in servers:
            cells = {client: Cell(results, case, client, server, "client_us") for client in clients}
            ours = cells.get(OURS)
            peers = {name: cell for name, cell in cells.items() if name != OURS}
            body.append([case, server, *cells.values(), *client_verdicts(results, case, ours, peers)])
    return rows(["case", "server", *clients, "the cheapest of the others", "shb"], body)


def server_table(results):
    cases, clients, servers = names(results)
    body = []
    for case in cases:
        for client in clients:
            cells = {server: Cell(results, case, client, server, "server_us") for server in servers}
            ours = cells.get(OUR_SERVER)
            peers = {name: cell for name, cell in cells.items() if name != OUR_SERVER}
            limit = server_limit(results.get("engine", ONLY_ENGINE), "one-request" not in case)
            judged = verdict(ours, peers, lambda _: limit)
            body.append([case, client, *cells.values(), judged if client == JUDGE else f"({judged})"])
    return rows(["case", "client", *servers, "target"], body)


# What content costs: a workload with all of it, one without, and the case that the first milestone was judged by.
CONTENT, SIZES = "persistent PolyMix-4", "persistent, sizes of PolyMix-4"
CONTROL, FIRST = "persistent 9 KB, as a workload", "persistent 13 KB"
CONTENT_LIMIT = 1.15


def content_verdict(cell, other):
    """A case against another one of the same run: round by round, for neighbours in time have the same machine."""
    both = sorted(cell.rounds.keys() & other.rounds.keys())
    if not both:
        return "not measured"
    shares = [cell.rounds[i] / other.rounds[i] for i in both]
    word = "met" if median(shares) <= CONTENT_LIMIT else "**missed**"
    return f"{word}: {median(shares):.2f} ({min(shares):.2f}-{max(shares):.2f})"


def content_table(results):
    def cell(case, client):
        return Cell(results, case, client, OUR_SERVER, "client_us")

    content = cell(CONTENT, OURS)
    peers = unique(r["client"] for r in results["records"] if r["case"] == CONTENT and r["client"] != OURS)
    others = [(CONTENT, peer) for peer in peers] + [(case, OURS) for case in (SIZES, CONTROL, FIRST)]
    body = [[case, client, cell(case, client), content_verdict(content, cell(case, client))] for case, client in others]
    body = [[CONTENT, OURS, content, ""], *body, [FIRST, JUDGE, cell(FIRST, JUDGE), "how noisy the machine was"]]
    return rows(["case", "client", "microseconds", f"cost of PolyMix-4 relative to this row, limit {CONTENT_LIMIT}"], body)


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
    return "\n\n".join([client_table(results), server_table(results), content_table(results), failures(results), compiler_table(results)])


def page(results, template):
    machine = results["machine"]
    facts = [f"- {machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}",
             f"- {machine['polygraph']}, commit {machine['commit']}, cargo's profile `{results['profile']}`, engine `{results['engine']}`",
             *(f"- {tool}: {package}" for tool, package in machine["peers"].items())]
    return Template(template).substitute(
        machine="\n".join(facts), engine=results["engine"], kernel=machine["kernel"], width=width(results), repeats=results["repeats"], connections=results["connections"], judge=JUDGE,
        clients=client_table(results), servers=server_table(results), content=content_table(results), failures=failures(results),
        compiler=f"{COMPILER}\n\n{compiler_intro()}\n\n{compiler_table(results)}")
