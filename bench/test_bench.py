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
from bench import GENERATED, INSTALLED, commit, servers_of
from clients import OURS, number
from cpu import Cpu, Meter
from kernel import kind_of
from ratios import EPOLL, URING, append_history, creep, history_rows, ratio, read_history
from replay import heads
from servers import OUR_SERVERS, Failure

EPOLL_CLIENT = OURS[EPOLL]


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
            samples = {EPOLL_CLIENT: ours, "ab": ab, "wrk": wrk}
            records = [record(i, client, "nginx", us) for client, all_us in samples.items()
                       for i, us in enumerate(all_us)]
            last = table.client_table({"records": records}).splitlines()[-1]
            self.assertIn(wanted, last)

        check([7, 7, 7], [9, 9, 9], [8, 8, 8], "| met: 0.88 of wrk (0.88-0.88 in 3 rounds), limit 1 | not measured |")
        check([5, 7, 9], [6, 6, 6], [8, 8, 8], "| **missed**: 1.13 of ab (0.55-2.36 in 3 rounds, wider than 5 %), limit 1 |")
        check([7], [6], [8], "| **missed**: 1.17 of ab (one round), limit 1 |")
        check([5, 7, 9], [], [], "| not measured | not measured |")

    def test_the_limits_depend_on_the_engine(self):
        costs = {EPOLL_CLIENT: 9, OURS[URING]: 9, "wrk": 10, "shb": 8}
        records = [record(i, client, "nginx", us) for client, us in costs.items() for i in range(3)]
        last = table.client_table({"records": records}).splitlines()[-1]
        for wanted in ["met: 0.90 of wrk (0.90-0.90 in 3 rounds), limit 1 | 1.12 of shb (1.12-1.12 in 3 rounds) |",
                       "**missed**: 0.90 of wrk (0.90-0.90 in 3 rounds), limit 0.85 | **missed**: 1.12 of shb (1.12-1.12 in 3 rounds), limit 1.1 |"]:
            self.assertIn(wanted, last)

    def test_both_engines_are_measured_in_one_run_and_compared(self):
        records = [record(i, client, server, us, server_us) for i in range(3) for client, server, us, server_us in [
            (EPOLL_CLIENT, OUR_SERVERS[URING], 9, 7), (OURS[URING], OUR_SERVERS[URING], 6, 7), ("wrk", OUR_SERVERS[URING], 8, 5),
            ("wrk", OUR_SERVERS[EPOLL], 8, 10), ("wrk", "nginx", 8, 8)]]
        found = {(engine, side, peer): round(known.value, 3) for engine, side, _, _, peer, known in table.all_ratios({"records": records})}
        self.assertEqual(found, {
            (EPOLL, "client", "wrk"): 1.125, (URING, "client", "wrk"): 0.75, (URING, "client", EPOLL_CLIENT): 0.667,
            (EPOLL, "server", "nginx"): 1.25, (URING, "server", "nginx"): 0.625, (URING, "server", OUR_SERVERS[EPOLL]): 0.5})
        # Clients are compared on one of our servers; the other one is judged by a peer.
        self.assertEqual([row.split("|")[2].strip() for row in table.client_table({"records": records}).splitlines()[2:]],
                         [OUR_SERVERS[URING]])
        names = [*OUR_SERVERS.values(), "nginx"]
        case = type("Case", (), {"workload": None})
        self.assertEqual(servers_of("wrk", case, names), names)
        self.assertEqual(servers_of("ab", case, names), [OUR_SERVERS[URING], "nginx"])

    def test_an_open_loop_is_judged_by_its_lateness(self):
        pace = [{"engine": engine, "client_us": 20.0, "late_p99_ms": late} for engine, late in [(EPOLL, 0.2), (URING, 0.7)]]
        rows = table.pace_table({"pace": [*pace, {"engine": URING, "failure": "no"}]}).splitlines()
        self.assertTrue(rows[2].endswith("| met, limit 0.5 |") and rows[3].endswith("| **missed**, limit 0.5 |"), rows)
        self.assertEqual(table.pace_table({}), "Not measured.")

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
            return [record(i, client, OUR_SERVERS[URING], us) | {"case": case} for client, all_us in [(EPOLL_CLIENT, ours), ("wrk", [10] * 4)]
                    for i, us in enumerate(all_us)]

        results = {"records": of("steady", [9, 9, 9, 9]) + of("noisy", [7, 9, 12, 9])}
        self.assertEqual(table.wide(results), ["noisy"])
        self.assertEqual(table.width(results), "1 of 2 ratios have an interval narrower than 5 %.")

    def test_the_history_shows_a_slow_creep(self):
        machine = {"commit": "c", "polygraph": "polygraph 1", "processor": "p", "kernel": "6"}
        results = {"machine": machine, "profile": "release"}

        def rows(ours, engine=EPOLL):
            found = [(engine, "client", "c", "nginx", "wrk", ratio({i: ours for i in range(3)}, {i: 10.0 for i in range(3)}))]
            return history_rows(results, found, "quick", "2026-11-23")

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
            self.assertEqual(creep(known, rows(9.9, URING)), [])

    def test_what_is_measured_is_what_is_installed(self):
        makefile = (Path(__file__).parent.parent / "Makefile").read_text()
        self.assertIn(f"\nPROFILE ?= {INSTALLED}\n", makefile)
        self.assertIn("/$(PROFILE)/polygraph' '$(BINDIR)/polygraph'", makefile)
        self.assertIn("bench bench-quick: all\n", makefile)

    def test_results_do_not_make_a_commit_dirty(self):
        with tempfile.TemporaryDirectory() as tree:
            folder = Path(tree) / "bench"
            folder.mkdir()

            def git(*words):
                who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
                return subprocess.run(["git", "-C", tree, *who, *words], check=True, stdout=-1, text=True).stdout.strip()

            for path in [Path(tree) / "code", *(folder / name for name in [*GENERATED, "bench.py"])]:
                path.write_text("old")
            git("init", "-q")
            git("add", ".")
            git("commit", "-q", "-m", "c")
            clean = git("describe", "--always")
            self.assertEqual(commit(folder), clean)
            (Path(tree) / "new").write_text("of nobody")
            for name in GENERATED:
                (folder / name).write_text("new")
            git("add", "bench/history.csv")
            self.assertEqual(commit(folder), clean)
            for path in [Path(tree) / "code", folder / "bench.py"]:
                path.write_text("new")
                self.assertEqual(commit(folder), f"{clean}-dirty")
                path.write_text("old")
            # Not a file that has the name of one elsewhere.
            (Path(tree) / "RESULTS.md").write_text("new")
            git("add", "RESULTS.md")
            self.assertEqual(commit(folder), f"{clean}-dirty")

    def test_content_is_judged_within_rounds(self):
        def content(costs):
            return [record(i, client, table.WORKLOAD_SERVER, us) | {"case": case, "workload": True}
                    for (case, client), all_us in costs.items() for i, us in enumerate(all_us)]

        # Of the second round everything is slow.
        records = content({(table.CONTENT, EPOLL_CLIENT): [11, 22, 11], (table.SIZES, EPOLL_CLIENT): [10, 20, 10],
                           (table.CONTROL, EPOLL_CLIENT): [8, 16, 8], (table.CONTENT, "wrk"): [12, 24, 12], (table.CONTENT, "h2load"): [10, 20, 10]})
        judged = [row.split("|")[-2].strip() for row in table.content_table({"records": records}).splitlines()[2:]]
        self.assertEqual(judged, ["met: 0.92 of that (0.92-0.92 in 3 rounds), limit 1", "1.10 of that (1.10-1.10 in 3 rounds)",
                                  "1.10 of that (1.10-1.10 in 3 rounds)", "**missed**: 1.38 of that (1.38-1.38 in 3 rounds), limit 1.15"])
        # No other client understands workloads, so they are not compared with any.
        self.assertNotIn("PolyMix", table.client_table({"records": records}))
        alone = content({(table.CONTENT, EPOLL_CLIENT): [11]})
        self.assertIn("| not measured |", table.content_table({"records": alone}))

    def test_requests_are_recorded_as_they_were_sent(self):
        shown = ("000.00| dump: request of GET http://127.0.0.1:20000/a, xact 1:2:3\n000.00| GET /a HTTP/1.1\n000.00| Host: 127.0.0.1:20000\n000.00|\n"
                 "000.00| dump: request of POST http://127.0.0.1:20000/b, xact 1:2:5\n000.00| POST /b HTTP/1.1\n000.00|\n000.00| body\n000.00|\n"
                 "000.01| dump: request of GET http://127.0.0.1:20000/c, xact 1:2:7\n000.01| GET /c HTTP/1.1\n000.01|\n"
                 "000.02| dump: 5 more are left out\n")
        self.assertEqual(heads(shown, 20000), ["GET /a HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n", "GET /c HTTP/1.1\r\n\r\n"])
        ended = "000.01| dump: request\nGET /d HTTP/1.1\nHost: h\n000.02| shutdown reason: all phases met their goals\n"
        self.assertEqual(heads(ended, 20000), ["GET /d HTTP/1.1\r\nHost: h\r\n\r\n"])

    def test_a_failed_measurement_is_reported_and_not_counted(self):
        failed = {"case": "c", "repeat": 0, "client": "ab", "server": "nginx", "failure": "failed: 3 instead of 0"}
        results = json.loads(json.dumps({"records": [record(0, EPOLL_CLIENT, "nginx", 5.0), failed]}))
        self.assertIn("| not measured |", table.client_table(results))
        self.assertEqual(table.failures(results), "- c, ab against nginx: failed: 3 instead of 0")

    def test_the_kernels_work_is_told_from_its_call_chains(self):
        send = ["tcp_sendmsg_locked", "tcp_sendmsg", "io_send", "io_issue_sqe", "__do_sys_io_uring_enter"]
        self.assertEqual(kind_of(["_copy_from_iter", *send]), "sending")
        # What a sender does for the receiver over loopback.
        self.assertEqual(kind_of(["tcp_ack", "tcp_v4_rcv", "net_rx_action", "__tcp_transmit_skb", *send]), "delivery")
        self.assertEqual(kind_of(["read_tsc", "asm_sysvec_apic_timer_interrupt", *send]), "interrupts")
        self.assertEqual(kind_of(["_copy_to_iter", "tcp_recvmsg", "io_recv", "io_issue_sqe"]), "receiving")
        self.assertEqual(kind_of(["ip_route_output_flow", "__inet_stream_connect", "io_connect"]), "connections")
        self.assertEqual(kind_of(["io_cqring_wait", "__do_sys_io_uring_enter"]), "ring, poll")
        self.assertEqual(kind_of(["clear_page_erms", "exc_page_fault"]), "other")


if __name__ == "__main__":
    unittest.main()
