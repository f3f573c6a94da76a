"""CPU time of processes, in microseconds, from the kernel's own accounts."""

import os
from dataclasses import dataclass
from pathlib import Path

TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """CPU time in user mode and in the kernel, in microseconds."""

    user: float = 0.0
    system: float = 0.0

    def __add__(self, other):
        return Cpu(self.user + other.user, self.system + other.system)

    def __sub__(self, other):
        return Cpu(self.user - other.user, self.system - other.system)

    def per(self, count):
        """The share of one of `count` transactions."""
        return Cpu(self.user / count, self.system / count)

    @property
    def total(self):
        return self.user + self.system


def of_rusage(usage):
    """What `wait4` says about a child that has ended."""
    return Cpu(usage.ru_utime * 1e6, usage.ru_stime * 1e6)


def of_processes(pids):
    """The time that running processes have used so far, all threads."""
    return sum(map(of_process, pids), Cpu())


def of_process(pid):
    # The name in parentheses may hold spaces, so fields are counted after it; utime and stime are 14 and 15.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Cpu(int(fields[11]) * TICK_US, int(fields[12]) * TICK_US)


def exact_total(pids):
    """The sum of user and system time in microseconds from the scheduler, which counts nanoseconds where
    `stat` counts ticks of 10 ms; None if this kernel does not tell."""
    try:
        tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1000
    except FileNotFoundError:
        return None


class Meter:
    """Measures what processes use from its creation on."""

    def __init__(self, pids):
        self.pids = list(pids)
        self.begin, self.begin_exact = of_processes(self.pids), exact_total(self.pids)

    def read(self):
        """The time used so far. The sum is exact to the nanosecond, its division into user and system time
        to a tick."""
        used, exact = of_processes(self.pids) - self.begin, exact_total(self.pids)
        if exact is None or self.begin_exact is None or used.total == 0:
            return used
        scale = (exact - self.begin_exact) / used.total
        return Cpu(used.user * scale, used.system * scale)
