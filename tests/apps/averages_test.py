"""averages as a user runs it: exact averages, history anew for each application id, bad lines said."""
import csv
import datetime
import io
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from support import FULL, Case


def average_text(prices):
    """The documented text of an average of decimals, by Python's own arithmetic."""
    mean = sum(map(Fraction, prices)) / len(prices)
    if (mean * 10**18).denominator == 1:
        digits = Decimal(int(mean * 10**18)).scaleb(-18, Context(prec=80))
    else:
        sixteen = Context(prec=16, rounding=ROUND_HALF_EVEN)
        rough = sixteen.divide(Decimal(mean.numerator), Decimal(mean.denominator))
        decimals = max(16, -rough.as_tuple().exponent)
        scaled = mean * 10**decimals
        digits = Decimal(round(scaled)).scaleb(-decimals, Context(prec=80))  # Fraction: half to even
    text = format(digits, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def expected(rows):
    """[(symbol, average, count)] of [(symbol, date, price)]."""
    prices = {}
    for symbol, _, price in rows:
        prices.setdefault(symbol, []).append(price)
    return sorted((symbol, average_text(all_of_it), len(all_of_it)) for symbol, all_of_it in prices.items())


def csv_text(rows):
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def table(output):
    rows = [line.rsplit("\t", 2) for line in output.decode().splitlines()]
    return [(symbol, average, int(count)) for symbol, average, count in rows]


class AveragesCase(Case):
    def averages(self, *arguments, **keywords):
        return self.run_program("averages", "--until-end", *arguments, **keywords)

    def average(self, text, *arguments, **keywords):
        return table(self.averages("--quiet", "--quotes", "-", *arguments, stdin=text, **keywords))


class Numbers(AveragesCase):
    # cases.md N10
    def test_sums_lose_nothing(self):
        rows = [("A", "2024-01-02", price) for price in ("1e16", "1", "-1e16")]
        rows += [("B", "2024-01-02", "0.1")] * 10_000
        rows += [("Q", "2024-01-02", price) for price in ("3002399751580331", "0", "0", "0", "-3002399751580331")]
        self.assertEqual(self.average(csv_text(rows)),
                         [("A", "0.3333333333333333", 3), ("B", "0.1", 10_000), ("Q", "0", 5)])

    def test_any_decimals_average_as_fractions_do(self):
        seed = random.randrange(1 << 32)
        generator = random.Random(seed)
        rows = []
        for _ in range(20_000 if FULL else 3_000):
            whole = generator.randrange(10 ** generator.randrange(0, 19))
            decimals = generator.randrange(0, 19)
            price = f"{whole}.{generator.randrange(10**decimals):0{decimals}}" if decimals else str(whole)
            rows.append((f"S{generator.randrange(200)}", "2024-01-02", generator.choice(("", "-", "+")) + price))
        self.assertEqual(self.average(csv_text(rows)), expected(rows), f"seed {seed}")

    def test_rounding_by_hand(self):
        groups = {
            "carry": ["0.999999999999999999"] * 2 + ["1"],   # 0.9999999999999999993..
            "third": ["100", "0", "0"],
            "tiny": ["0.000000000000000001", "0", "0"],
            "two_thirds": ["1", "1", "0"],
            "wide": ["123456789012345678", "123456789012345678.000000000000000001"],
            "negative": ["-1", "0", "0"],
            "zero": ["1.50", "-1.5"],
        }
        rows = [(symbol, "2024-01-02", price) for symbol, prices in groups.items() for price in prices]
        self.assertEqual({symbol: average for symbol, average, _ in self.average(csv_text(rows))}, {
            "carry": "1", "third": "33.3333333333333333", "tiny": "0.0000000000000000003333333333333333",
            "two_thirds": "0.6666666666666667", "wide": "123456789012345678",
            "negative": "-0.3333333333333333", "zero": "0"})

    def test_partitions_and_threads_change_nothing(self):
        rows = [(f"S{i % 17}", "2024-01-02", f"{i}.{i % 7}") for i in range(2000)]
        self.assertEqual(self.average(csv_text(rows), "--partitions", "4", "--threads", "2"), expected(rows))


class Lines(AveragesCase):
    def test_quoting_line_ends_header_and_mark_follow_rfc_4180(self):
        rows = [("a,b", "2024-01-02", "1"), ('say "x"', "2024-01-02", "2"), ("two\nlines", "2024-01-02", "3"),
                ("größe", "2024-01-02", "4")]
        head = b"\xef\xbb\xbfSymbol,Date,Price\r\n"
        got = self.averages("--quiet", "--quotes", "-", "-o", "json", stdin=head + csv_text(rows))
        self.assertEqual([(r["symbol"], r["average"], r["count"]) for r in map(json.loads, got.splitlines())],
                         sorted(((s, int(p), 1) for s, _, p in rows), key=lambda row: row[0].encode()))

    def test_random_fields_are_read_as_python_writes_them(self):
        seed = random.randrange(1 << 32)
        generator = random.Random(seed)
        rows = []
        for _ in range(2000):
            symbol = "x" + "".join(generator.choices('abc,"\n\r é', k=generator.randrange(6))) + "x"
            rows.append((symbol, "2024-01-02", str(generator.randrange(1000))))
        output = self.averages("--quiet", "--quotes", "-", "-o", "json", stdin=csv_text(rows))
        got = {row["symbol"]: (row["average"], row["count"]) for row in map(json.loads, output.splitlines())}
        self.assertEqual({symbol: count for symbol, (_, count) in got.items()},
                         {symbol: count for symbol, _, count in expected(rows)}, f"seed {seed}")

    def test_a_header_may_name_other_columns_in_another_order(self):
        text = b"date, volume , price, SYMBOL\n2024-01-02, 100, 2.5, A\n\n2024-01-02,1,3.5,A\n"
        self.assertEqual(self.average(text), [("A", "3", 2)])

    def test_the_timestamp_is_the_quotes_date(self):
        dates = {"1970-01-01": 0, "2000-02-29": 951782400000, "2024-03-10T12:34:56.789Z": 1710074096789,
                 "2024-03-10 12:34+02:00": 1710066840000, "2024-03-10T12:34:56": 1710074096000}
        for date, stamp in dates.items():
            zone = date if "+" in date or "Z" in date else date + ("T00:00" if len(date) == 10 else "") + "+00:00"
            self.assertEqual(stamp, round(datetime.datetime.fromisoformat(zone.replace("Z", "+00:00")).timestamp() * 1000))
        self.average(csv_text([("A", date, "1") for date in dates]))
        records = [json.loads(line) for line in self.weir("consume", "quotes", "-o", "json").splitlines()]
        self.assertEqual([record["timestamp"] for record in records], list(dates.values()))
        self.assertEqual([(r["key"], r["value"]) for r in records], [("A", "1")] * len(dates))

    BAD = (b"A,2024-01-02,1\nA,2024-01-02\nA,yesterday,2\nA,2024-01-02,two\n,2024-01-02,3\nA,2024-02-30,4\n"
           b"A,1969-12-31,5\nA,2999-01-01,6\nA,2024-01-02,1e19\nA,2024-01-02,0.0000000000000000001\n"
           b'A,2024-01-02,"7"8\nA,2024-01-02,9"\nA,2024-01-02,2\n')

    def test_bad_lines_are_named_counted_and_the_others_averaged(self):
        rows = table(self.averages("--quotes", "-", stdin=self.BAD, code=1))
        self.assertEqual(rows, [("A", "1.5", 2)])
        for part in ("line 2 is no quote: it has 2 fields instead of 3", "line 3 is no quote: 'yesterday' is no date",
                     "line 4 is no quote: the price 'two' is no decimal number", "line 5 is no quote: its symbol is empty",
                     "line 6 is no quote: '2024-02-30'", "line 7 is no quote: the date 1969-12-31 is before 1970",
                     "line 8 is no quote: the date 2999-01-01", "message.timestamp.after.max.ms",
                     "line 9 is no quote: the price '1e19' has more than 18 digits",
                     "line 10 is no quote: the price '0.0000000000000000001' has more than 18 decimals",
                     "line 11 is no quote: it has text behind a closing quote",
                     "line 12 is no quote: it has a quote inside a field", "2 quotes sent to topic quotes, 11 bad lines"):
            self.assertIn(part, self.stderr)

    def test_the_policy_for_bad_lines_is_the_users(self):
        rows = table(self.averages("--quotes", "-", "--bad-lines", "skip", stdin=self.BAD))
        self.assertEqual(rows, [("A", "1.5", 2)])
        self.assertNotIn("line 2", self.stderr)
        self.assertIn("11 bad lines", self.stderr)
        self.setUp()
        self.averages("--quotes", "-", "--bad-lines", "stop", stdin=self.BAD, code=1)
        for part in ("INVALID_RECORD", "stdin line 2 is no quote", "--bad-lines"):
            self.assertIn(part, self.stderr)

    def test_many_bad_lines_are_not_all_named(self):
        self.averages("--quotes", "-", stdin=b"nonsense\n" * 1000, code=1)
        self.assertEqual(self.stderr.count("is no quote"), 20)
        self.assertIn("1000 bad lines", self.stderr)

    def test_a_quote_that_is_never_closed_is_bounded_and_said(self):
        rest = b"".join(b"B,2024-01-02,%d\n" % i for i in range(20_000))
        rows = table(self.averages("--quotes", "-", stdin=b'A,2024-01-02,1\n"A,2024-01-02,1\n' + rest, code=1))
        self.assertIn("stdin line 2 is no quote: it has more than 65536 bytes; is a quote not closed?", self.stderr)
        self.assertEqual(rows[0], ("A", "1", 1))
        self.assertGreater(rows[1][2], 15_000)
        self.setUp()
        self.averages("--quotes", "-", stdin=b'A,2024-01-02,"1', code=1)
        self.assertIn("line 1 is no quote: it has a quote that is not closed", self.stderr)

    def test_a_value_of_another_program_stops_it_by_name_or_is_skipped(self):
        self.average(b"A,2024-01-02,1\n")
        self.weir("produce", "quotes", "--parse-key", stdin=b"A\tabc\nA\t2\n")
        self.averages(code=6)
        for part in ("quotes-0", "offset 1", "abc"):
            self.assertIn(part, self.stderr)
        rows = table(self.averages("--config", "deserialization.exception.handler=continue"))
        self.assertEqual(rows, [("A", "1.5", 2)])

    def test_mistakes_on_the_command_line(self):
        for code, parts, arguments in ((3, ("no/such/file", "readable file"), ("--quotes", "no/such/file")),
                                       (2, ("--follow",), ("--quotes", "x", "--follow", "--until-end")),
                                       (2, ("--quotes",), ("--follow",)),
                                       (2, ("--bad-lines",), ("--bad-lines", "perhaps")),
                                       (2, ("--threads",), ("--threads", "many"))):
            with self.subTest(arguments):
                self.assert_fails(code, *parts, program="averages", arguments=arguments)
        self.assertFalse(os.path.exists(os.path.join(self.data, "state", "averages")))


class History(AveragesCase):
    FIRST = [("A", "2024-01-02", "1"), ("A", "2024-01-03", "2"), ("B", "2024-01-03", "5")]
    SECOND = [("A", "2024-01-04", "9"), ("C", "2024-01-04", "7")]

    def under(self, application, *arguments, stdin=b""):
        output = self.averages("--quiet", "--application-id", application, "--output", application + "-out",
                               *arguments, stdin=stdin)
        return table(output)

    def test_three_application_ids_the_third_starts_from_zero_after_the_log_was_removed(self):
        self.assertEqual(self.under("first", "--quotes", "-", stdin=csv_text(self.FIRST)), expected(self.FIRST))
        self.assertEqual(self.under("first"), expected(self.FIRST))  # nothing twice
        self.assertEqual(self.under("second"), expected(self.FIRST))  # all of the history anew
        self.assertEqual(self.under("first", "--quotes", "-", stdin=csv_text(self.SECOND)),
                         expected(self.FIRST + self.SECOND))
        self.assertEqual(self.under("second"), expected(self.FIRST + self.SECOND))
        shutil.rmtree(os.path.join(self.data, "log"))
        self.assertEqual(self.under("third", "--quotes", "-", stdin=csv_text(self.SECOND)), expected(self.SECOND))
        self.assertEqual(self.weir("topic", "list").split(), [b"__consumer_offsets", b"quotes",
                                                             b"third-means-changelog", b"third-out"])

    def test_a_deleted_topic_is_history_that_a_new_id_does_not_see(self):
        self.under("first", "--quotes", "-", stdin=csv_text(self.FIRST))
        self.weir("topic", "delete", "quotes")
        self.assertEqual(self.under("third", "--quotes", "-", stdin=csv_text(self.SECOND)), expected(self.SECOND))

    def test_a_reset_application_counts_from_the_beginning(self):
        self.under("first", "--quotes", "-", stdin=csv_text(self.FIRST))
        planned = self.weir("app", "reset", "first")
        self.assertEqual(self.under("first"), expected(self.FIRST))
        self.assertEqual(self.weir("app", "reset", "first", "--execute"),
                         planned.replace(b"(from 0)", b"(from 3)"))
        self.assertEqual(self.weir("app", "list"), b"")
        self.weir("topic", "delete", "first-out")
        self.assertEqual(self.under("first"), expected(self.FIRST))

    def test_a_reset_to_a_time_leaves_what_is_older_out(self):
        self.under("first", "--quotes", "-", stdin=csv_text(self.FIRST + self.SECOND))
        self.weir("app", "reset", "first", "--to-time", "2024-01-04", "--execute")
        self.weir("topic", "delete", "first-out")
        self.assertEqual(self.under("first"), expected(self.SECOND))

    def test_long_history_lies_in_one_segment_and_has_no_age(self):
        rows = [("A", f"{year}-01-02", "1") for year in range(1970, 2025)]
        self.assertEqual(self.average(csv_text(rows)), [("A", "1", 55)])
        segments = [name for name in os.listdir(os.path.join(self.data, "log", "quotes-0")) if name.endswith(".log")]
        self.assertEqual(len(segments), 1)
        described = json.loads(self.weir("topic", "describe", "quotes", "-o", "json"))
        self.assertEqual(described["config"]["retention.ms"], "-1")


class Live(AveragesCase):
    def start(self, *arguments):
        process = subprocess.Popen(self.command("averages", "--quiet", *arguments), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for_offset(self, offset):
        """Asks beside the running program until it has committed; the deadline is generous, not timed."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            done = subprocess.run(self.command("weir", "group", "describe", "averages", "-o", "json"),
                                  capture_output=True, check=False)
            if done.returncode == 0 and json.loads(done.stdout)["currentOffset"] == offset:
                return
        self.fail(f"offset {offset} was not committed: {done.stderr.decode()}")

    def test_what_is_appended_to_the_file_is_followed(self):
        path = os.path.join(self.folder, "quotes.csv")
        with open(path, "wb") as file:
            file.write(b"symbol,date,price\nA,2024-01-02,1\n")
        process = self.start("--quotes", path, "--follow")
        self.wait_for_offset(1)
        with open(path, "ab") as file:
            file.write(b"A,2024-01-03,2\nB,2024-01-03,")
        self.wait_for_offset(2)
        with open(path, "ab") as file:
            file.write(b"5\n")
        self.wait_for_offset(3)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(table(output), [("A", "1.5", 2), ("B", "5", 1)])

    # cases.md N10: "the same after kill and restart"
    def test_a_kill_behind_a_commit_changes_nothing(self):
        process = self.start("--quotes", "-")
        process.stdin.write(csv_text([("A", "2024-01-02", price) for price in ("1e16", "1", "-1e16")]))
        process.stdin.flush()
        self.wait_for_offset(3)
        process.kill()
        process.communicate(timeout=60)
        self.assertEqual(table(self.averages("--quiet")), [("A", "0.3333333333333333", 3)])
        self.assertEqual(self.average(b"A,2024-01-02,2\n"), [("A", "0.75", 4)])


if __name__ == "__main__":
    unittest.main()
