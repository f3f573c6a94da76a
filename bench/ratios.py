"""Ratios of costs with their intervals, how far they may go, and their history."""

import csv
import math
from dataclasses import dataclass
from statistics import fmean, median, stdev

# Intervals contain the true ratio with 95 % confidence. They are narrow enough if they are narrower than this share.
NARROW = 0.05
# Student's distribution: standard errors on each side of the mean, for 1, 2, 3... degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
           2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]
# Engines of this project as logs name them.
EPOLL, URING = ENGINES = ["epoll", "uring"]
# A ratio has become worse if even the low end of its interval is this much above what it used to be.
CREEP = 1.05
COLUMNS = ["date", "commit", "version", "profile", "processor", "kernel", "engine", "form", "side", "case", "against", "peer",
           "ratio", "low", "high", "rounds"]


@dataclass(frozen=True)
class Ratio:
    """The mean of ratios that were measured round by round, because neighbours in time have the same machine."""

    value: float
    low: float
    high: float
    rounds: int

    @property
    def narrow(self):
        return self.high / self.low - 1 < NARROW

    def of(self, peer):
        if self.rounds == 1:
            return f"{self.value:.2f} of {peer} (one round)"
        text = f"{self.value:.2f} of {peer} ({self.low:.2f}-{self.high:.2f} in {self.rounds} rounds"
        return f"{text})" if self.narrow else f"{text}, wider than {100 * NARROW:g} %)"


def ratio(ours, theirs):
    """The ratio of two costs by round; `None` if no round has both."""
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return None
    logs = [math.log(ours[i] / theirs[i]) for i in both]
    mean = fmean(logs)
    half = math.inf
    if len(logs) > 1:
        half = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * stdev(logs) / math.sqrt(len(logs))
    # Infinite ends of a single round.
    low, high = (math.exp(mean - half), math.exp(mean + half)) if half < 700 else (1e-300, math.inf)
    return Ratio(math.exp(mean), low, high, len(logs))


def client_limit(engine, peer, persistent):
    """How much of a peer's cost the client may need; `None` if there is no such target."""
    if peer == "shb":
        return (1.10 if persistent else 1.05) if engine == URING else None
    return 0.85 if engine == URING else 1.0


def server_limit(engine, persistent):
    return (0.75 if persistent else 0.6) if engine == URING else 1.0


def history_rows(results, found, form, date):
    """A line of the history for each ratio: `found` has engine, side, case, who it was measured against, peer, ratio."""
    machine = results["machine"]
    head = [date, machine["commit"], machine["polygraph"], results["profile"], machine["processor"], machine["kernel"]]
    return [[*head, engine, form, side, case, against, peer, f"{r.value:.3f}", f"{r.low:.3f}", f"{r.high:.3f}", r.rounds]
            for engine, side, case, against, peer, r in found if r.rounds > 1]


def read_history(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append_history(path, rows):
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(COLUMNS)
        writer.writerows(rows)


def creep(history, rows):
    """Ratios that have become worse than they used to be on the same kind of machine, in sentences."""
    same = ["processor", "kernel", "engine", "form", "side", "case", "against", "peer"]
    found = []
    for row in (dict(zip(COLUMNS, map(str, row))) for row in rows):
        before = [float(old["ratio"]) for old in history if all(old[key] == row[key] for key in same)]
        if before and float(row["low"]) > CREEP * median(before):
            found.append(f"{row['side']}, {row['case']}, {row['against']}: {row['ratio']} of {row['peer']}, "
                         f"{median(before):.3f} before")
    return found
