"""Tests of the harness itself: `python3 -m unittest discover bench`."""

import json
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import table
from bench import INSTALLED
from clients import number
from cpu import Cpu, Meter
from ratios import append_history, creep, history_rows, ratio, read_history
from replay import heads
from servers import Failure


def record(repeat, client, server, client_us, server_us=1.0):
    us = {"client_us": client_us, "server_us": server_us}
    return {"case": "c", "repeat": repeat, "client": client, "server": server, "count": 1} | {
        side: {"user": 0.0, "system": total, "total": total} for side, total in us.items()}


class Tests(unittest.TestCase):
    def test_a_meter_sees_the_work_of_a_process(self):
        code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
        with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as child:
            meter = Meter([child.pid])
            child.stdout.readline()
            used = meter.read()
            self.assertGreater(used.total, 150_000)
            self.assertLess(used.total, 600_000)
            idle = Meter([child.pid])
            time.sleep(0.1)
            self.assertLess(idle.read().total, 10_000)
            child.communicate(b"\n")

    def test_costs_are_shared_among_transactions(self):
        self.assertEqual((Cpu(30, 10) + Cpu(10, 30) - Cpu(20, 20)).per(10), Cpu(2, 2))

    def test_numbers_come_from_whole_lines(self):
        text = "Complete requests:      20000\nFailed requests:        3\n"
        self.assertEqual(number(r"^Failed requests: +(\d+)", text), 3)
        self.assertEqual(number(r"^Non-2xx responses: +(\d+)", text, 0), 0)
        with self.assertRaises(Failure):
            number(r"^Write errors: +(\d+)", text)

    def test_the_section_about_the_compiler_is_refreshed_alone(self):
        def results(ms):
            return {"compiler": [{"program": "P", "bytes": 1234, "cpu_ms": [ms, ms + 2, ms + 1]}]}

        page = "# Title\n\nText.\n\n## Method\n\nEnd.\n"
        once = table.with_compiler(page, results(1.0))
        self.assertTrue(once.startswith(page))
        self.assertIn("| P | 1,234 | **2.00** (1.00-3.00) |", once)
        middle = once + "\n## Z\n\nLast.\n"
        twice = table.with_compiler(middle, results(5.0))
        self.assertIn("**6.00** (5.00-7.00)", twice)
        self.assertNotIn("**2.00**", twice)
        self.assertTrue(twice.endswith("\n## Z\n\nLast.\n"))
        self.assertEqual(table.with_compiler(twice, results(5.0)), twice)

    def test_the_cheapest_peer_is_the_measure(self):
        def check(ours, ab, wrk, wanted):
            samples = {"polyclt": ours, "ab": ab, "wrk": wrk}
            records = [record(i, client, "nginx", us) for client, all_us in samples.items()
                       for i, us in enumerate(all_us)]
            last = table.client_table({"records": records}).splitlines()[-1]
            self.assertIn(wanted, last)

        check([7, 7, 7], [9, 9, 9], [8, 8, 8], "| met: 0.88 of wrk (0.88-0.88 in 3 rounds), limit 1 | not measured |")
        check([5, 7, 9], [6, 6, 6], [8, 8, 8], "| **missed**: 1.13 of ab (0.55-2.36 in 3 rounds, wider than 5 %), limit 1 |")
        check([7], [6], [8], "| **missed**: 1.17 of ab (one round), limit 1 |")
        check([5, 7, 9], [], [], "| not measured | not measured |")

    def test_the_limits_depend_on_the_engine(self):
        records = [record(i, client, "nginx", us) for client, us in [("polyclt", 9), ("wrk", 10), ("shb", 8)] for i in range(3)]
        for engine, usual, uring in [("epoll", "met: 0.90", "| 1.12 of shb (1.12-1.12 in 3 rounds) |"),
                                     ("uring", "**missed**: 0.90", "**missed**: 1.12 of shb (1.12-1.12 in 3 rounds), limit 1.1 |")]:
            last = table.client_table({"records": records, "engine": engine}).splitlines()[-1]
            self.assertIn(usual, last)
            self.assertIn(uring, last)

    def test_an_interval_covers_what_rounds_say(self):
        found = ratio({0: 1.0, 1: 1.1, 2: 0.9, 3: 1.0}, {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 7.0})
        self.assertEqual(found.rounds, 4)
        self.assertTrue(0.85 < found.low < found.value < 1.0 < found.high < 1.15, found)
        self.assertFalse(found.narrow)
        # What hits a whole round alike does not make the interval wider.
        slow = ratio({i: 2.0 * (1 + i) for i in range(5)}, {i: 1.0 * (1 + i) for i in range(5)})
        self.assertTrue(slow.narrow and abs(slow.value - 2.0) < 1e-9, slow)
        self.assertFalse(ratio({0: 1.0}, {0: 1.0}).narrow)
        self.assertIsNone(ratio({0: 1.0}, {1: 1.0}))

    def test_cases_are_repeated_until_their_ratios_are_known(self):
        def of(case, ours):
            return [record(i, client, "polysrv", us) | {"case": case} for client, all_us in [("polyclt", ours), ("wrk", [10] * 4)]
                    for i, us in enumerate(all_us)]

        results = {"records": of("steady", [9, 9, 9, 9]) + of("noisy", [7, 9, 12, 9])}
        self.assertEqual(table.wide(results), ["noisy"])
        self.assertEqual(table.width(results), "1 of 2 ratios have an interval narrower than 5 %.")

    def test_the_history_shows_a_slow_creep(self):
        machine = {"commit": "c", "polygraph": "polygraph 1", "processor": "p", "kernel": "6"}
        results = {"machine": machine, "profile": "release", "engine": "epoll"}

        def rows(ours, **changed):
            found = [("client", "c", "nginx", "wrk", ratio({i: ours for i in range(3)}, {i: 10.0 for i in range(3)}))]
            return history_rows(results | changed, found, "quick", "2026-11-23")

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "history.csv"
            self.assertEqual(read_history(path), [])
            for ours in (9.0, 9.1, 9.2):
                append_history(path, rows(ours))
            known = read_history(path)
            self.assertEqual([row["ratio"] for row in known], ["0.900", "0.910", "0.920"])
            self.assertEqual(creep(known, rows(9.4)), [])
            self.assertEqual(creep(known, rows(9.9)), ["client, c, nginx: 0.990 of wrk, 0.910 before"])
            # Another engine has a history of its own.
            self.assertEqual(creep(known, rows(9.9, engine="uring")), [])

    def test_what_is_measured_is_what_is_installed(self):
        makefile = (Path(__file__).parent.parent / "Makefile").read_text()
        self.assertIn(f"/{INSTALLED}/polygraph' '$(BINDIR)/polygraph'", makefile)
        self.assertIn("bench bench-quick: all\n", makefile)
        self.assertNotIn("--profile", makefile)

    def test_content_is_judged_within_rounds(self):
        def content(costs):
            return [record(i, "polyclt", "polysrv", us) | {"case": case, "workload": case != table.FIRST}
                    for case, all_us in costs.items() for i, us in enumerate(all_us)]

        # Of the second round everything is slow.
        records = content({table.CONTENT: [11, 22, 11], table.CONTROL: [10, 20, 10], table.FIRST: [8, 18, 8]})
        rows = table.content_table({"records": records}).splitlines()
        self.assertTrue(rows[3].endswith("| not measured |"), rows[3])
        self.assertTrue(rows[4].endswith("| met: 1.10 (1.10-1.10) |"), rows[4])
        self.assertTrue(rows[5].endswith("| **missed**: 1.38 (1.22-1.38) |"), rows[5])
        # No other client understands workloads, so they are not compared with any.
        self.assertNotIn("PolyMix", table.client_table({"records": records}))
        alone = content({table.CONTENT: [11]})
        self.assertIn("| not measured |", table.content_table({"records": alone}))

    def test_peers_that_replay_the_content_are_compared_too(self):
        records = [record(0, client, "polysrv", us) | {"case": table.CONTENT, "workload": True}
                   for client, us in [("polyclt", 11), ("wrk", 10), ("h2load", 9)]]
        rows = table.content_table({"records": records}).splitlines()
        self.assertIn("| wrk | ", rows[3])
        self.assertTrue(rows[3].endswith("| met: 1.10 (1.10-1.10) |"), rows[3])
        self.assertTrue(rows[4].endswith("| **missed**: 1.22 (1.22-1.22) |"), rows[4])

    def test_requests_are_recorded_as_they_were_sent(self):
        shown = ("000.00| dump: request of GET http://127.0.0.1:20000/a, xact 1:2:3\n000.00| GET /a HTTP/1.1\n000.00| Host: 127.0.0.1:20000\n000.00|\n"
                 "000.00| dump: request of POST http://127.0.0.1:20000/b, xact 1:2:5\n000.00| POST /b HTTP/1.1\n000.00|\n000.00| body\n000.00|\n"
                 "000.01| dump: request of GET http://127.0.0.1:20000/c, xact 1:2:7\n000.01| GET /c HTTP/1.1\n000.01|\n"
                 "000.02| dump: 5 more are left out\n")
        self.assertEqual(heads(shown, 20000), ["GET /a HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", "GET /c HTTP/1.1\r\n\r\n"])

    def test_a_failed_measurement_is_reported_and_not_counted(self):
        failed = {"case": "c", "repeat": 0, "client": "ab", "server": "nginx", "failure": "failed: 3 instead of 0"}
        results = json.loads(json.dumps({"records": [record(0, "polyclt", "nginx", 5.0), failed]}))
        self.assertIn("| not measured |", table.client_table(results))
        self.assertEqual(table.failures(results), "- c, ab against nginx: failed: 3 instead of 0")


if __name__ == "__main__":
    unittest.main()
