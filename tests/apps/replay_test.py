"""Folders of Kafka's log files as a source: weir replay, and word_count and averages with --from-dir. Expected is what
Kafka's own consumer and Admin client said (tests/data/log)."""
import json
import os
import shutil
import subprocess
import unittest

from support import DATA, Case, table

LOG = os.path.join(DATA, "log")
WHOLE = os.path.join(LOG, "whole-directory")
USAGE, NOT_FOUND, DAMAGE = 2, 3, 6


def kafka_values(image, topic):
    """Per partition [(offset, value)] of the committed records, as Kafka's consumer read them."""
    with open(os.path.join(WHOLE, f"{image}.json"), encoding="utf-8") as file:
        read = json.load(file)["topics"][topic]["read"]
    return [[tuple(pair) for pair in partition["values"]] for partition in read]


def snapshot(folder):
    """Names, sizes, times and bytes of all that is in the folder."""
    found = {}
    for path, folders, files in os.walk(folder):
        found[path] = sorted(folders)
        for name in files:
            at = os.path.join(path, name)
            with open(at, "rb") as file:
                found[at] = (os.stat(at).st_mtime_ns, file.read())
    return found


class ReplayCase(Case):
    def replay(self, *arguments, **keywords):
        return self.weir("replay", "--from-dir", *arguments, **keywords)

    def replayed(self, *arguments, **keywords):
        return [json.loads(line) for line in self.replay(*arguments, "-o", "json", **keywords).splitlines()]

    def copy(self, *parts):
        """A copy of a folder of tests/data/log that may be changed."""
        to = os.path.join(self.folder, "copied", parts[-1])
        shutil.copytree(os.path.join(LOG, *parts), to)
        return to


class Prints(ReplayCase):
    def test_the_committed_records_of_a_whole_directory(self):
        for image in ("1-stopped", "2-snapshot", "3-killed"):
            with self.subTest(image):
                folder = os.path.join(WHOLE, image)
                records = self.replayed(folder, "--topic", "orders")
                for number, expected in enumerate(kafka_values(image, "orders")):
                    got = [(r["offset"], r["value"]) for r in records if r["partition"] == number]
                    self.assertEqual(got, expected)
        self.assertIn("was not closed cleanly", self.stderr)
        self.assertIn("orders-1: read up to offset 7\n", self.stderr)

    def test_text_as_consume_prints_it(self):
        folder = os.path.join(WHOLE, "1-stopped")
        out = self.replay(folder, "--topic", "with-dash-7", "--print-key", "--print-offset", "--separator", "|")
        self.assertEqual(out, b"Partition:0|Offset:0|k0|with-dash-7-0 0\nPartition:0|Offset:1|k1|with-dash-7-0 1\n")
        self.assertIn("2 records of 1 partitions", self.stderr)

    def test_from_a_time_and_of_one_partition(self):
        folder = os.path.join(WHOLE, "1-stopped")
        times = [r["timestamp"] for r in self.replayed(folder, "--topic", "orders", "--partition", "1")]
        later = self.replayed(folder, "--topic", "orders", "--partition", "1", "--from-time", str(times[2]))
        self.assertEqual([r["offset"] for r in later], [2, 3, 4])
        self.assertEqual(self.replayed(folder, "--topic", "orders", "--from-time", "2099-01-01"), [])

    def test_transactions(self):
        folder = os.path.join(LOG, "stored", "transactions-tv2")
        with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
            partition = next(p for p in json.load(file)["partitions"] if p["folder"] == "txn-segments-0")
        for arguments, key in (((), "readCommitted"), (("--uncommitted",), "readUncommitted")):
            offsets = [r["offset"] for r in self.replayed(folder, "--topic", "txn-segments", *arguments)]
            self.assertEqual(offsets, [o for first, last in partition[key] for o in range(first, last + 1)])
        self.replay(os.path.join(LOG, "stored", "transactions-tv2-open-live"))
        self.assertIn("read up to offset 3, where a transaction begins that has no end", self.stderr)

    def test_what_is_damaged_is_named_and_the_rest_is_given(self):
        folder = self.copy("crash-small", "flip-old-body")
        records = self.replayed(folder, code=DAMAGE)
        self.assertEqual([r["offset"] for r in records], [*range(0, 106), *range(108, 362)])
        self.assertIn("offsets 106 to 107 are lost", self.stderr)
        self.assertIn("1 damaged ranges, 2 offsets lost", self.stderr)

    def test_a_torn_tail_is_no_damage(self):
        records = self.replayed(self.copy("crash-small", "tail-cut-in-body"))
        self.assertEqual([r["offset"] for r in records], list(range(361)))
        self.assertIn("read up to offset 361; behind it stands", self.stderr)

    def test_nothing_is_written_into_the_folder(self):
        folder = self.copy("whole-directory", "3-killed")
        shutil.copytree(os.path.join(LOG, "crash-small", "swap-left"), os.path.join(folder, "swapped-0"))
        before = snapshot(folder)
        self.replay(folder, "--topic", "orders")
        self.assertEqual(len(self.replayed(folder, "--topic", "swapped")), 362)
        self.replay(folder, "--topic", "orders", "--to", "orders")
        self.run_program("word_count", "--quiet", "--until-end", "--from-dir", folder, "--input", "late")
        self.assertEqual(snapshot(folder), before)

    def test_mistakes_say_what_to_name(self):
        whole = os.path.join(WHOLE, "1-stopped")
        magic = os.path.join(LOG, "stored", "old-magic", "old-v0-none-0")
        for code, parts, arguments in (
                (NOT_FOUND, ("nothing",), (os.path.join(self.folder, "nothing"),)),
                (USAGE, ("again, compacted, empty, orders, with-dash-7", "--topic"), (whole,)),
                (NOT_FOUND, ("order", "orders"), (whole, "--topic", "order")),
                (NOT_FOUND, ("0 to 2",), (whole, "--topic", "orders", "--partition", "3")),
                (1, ("magic 0", "00000000000000000000.log"), (magic,))):
            with self.subTest(arguments):
                self.assert_fails(code, *parts, arguments=("replay", "--from-dir", *arguments))
        self.weir("topic", "create", "here")
        self.assert_fails(USAGE, os.path.join(self.data, "log"), arguments=("replay", "--from-dir", self.data))


class Copies(ReplayCase):
    def consumed(self, topic):
        return [json.loads(line) for line in self.weir("consume", topic, "-o", "json").splitlines()]

    def test_everything_of_a_record_but_its_offset(self):
        folder = os.path.join(LOG, "codecs", "gzip")
        source = self.replayed(folder)
        summary = json.loads(self.replay(folder, "--to", "copy", "-o", "json"))
        self.assertEqual(summary, {"topic": "codec-gzip", "to": "copy", "records": len(source), "partitions": 1,
                                   "damagedRanges": 0, "lostOffsets": 0, "complete": True})
        copied = self.consumed("copy")
        keep = ("partition", "key", "value", "headers", "timestamp")
        self.assertEqual([[r[k] for k in keep] for r in copied], [[r[k] for k in keep] for r in source])
        self.assertTrue(any(r["headers"] for r in copied))
        self.assertEqual([r["offset"] for r in copied], list(range(len(source))))

    def test_partitions_keep_their_numbers(self):
        self.replay(os.path.join(WHOLE, "2-snapshot"), "--topic", "orders", "--to", "orders")
        self.assertIn("18 records of 3 partitions", self.stderr)
        copied = self.consumed("orders")
        for number, expected in enumerate(kafka_values("2-snapshot", "orders")):
            self.assertEqual([r["value"] for r in copied if r["partition"] == number], [v for _, v in expected])
        self.assertIn(b"PartitionCount: 3", self.weir("topic", "describe", "orders"))

    def test_one_partition_folder_goes_to_its_number(self):
        folder = self.copy("crash-small", "only-logs")
        renamed = os.path.join(os.path.dirname(folder), "orders-2")
        os.rename(folder, renamed)
        self.replay(renamed, "--to", "t")
        self.assertEqual({r["partition"] for r in self.consumed("t")}, {2})

    def test_again_appends_again(self):
        folder = os.path.join(WHOLE, "1-stopped")
        for _ in range(2):
            self.replay(folder, "--topic", "with-dash-7", "--to", "t")
        self.assertEqual([r["value"] for r in self.consumed("t")], ["with-dash-7-0 0", "with-dash-7-0 1"] * 2)

    def test_a_topic_with_too_few_partitions_is_refused(self):
        self.weir("topic", "create", "small")
        self.assert_fails(USAGE, "small", "weir topic alter small --partitions 3", arguments=(
            "replay", "--from-dir", os.path.join(WHOLE, "1-stopped"), "--topic", "orders", "--to", "small"))
        self.assertEqual(self.consumed("small"), [])

    def test_damage_is_counted_and_the_rest_is_copied(self):
        summary = json.loads(self.replay(os.path.join(LOG, "crash-small", "middle-segment-missing"), "--to", "t", "-o",
                                         "json", code=DAMAGE))
        self.assertEqual((summary["records"], summary["damagedRanges"], summary["lostOffsets"]), (290, 1, 72))
        self.assertEqual(len(self.consumed("t")), 290)

    def test_from_a_directory_that_is_in_use(self):
        self.weir("topic", "create", "lines")
        self.weir("produce", "lines", stdin=b"1\n2\n3\n")
        holder = subprocess.Popen(self.command("weir", "produce", "lines"), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        while os.path.exists(os.path.join(self.data, "log", ".kafka_cleanshutdown")):
            self.assertIsNone(holder.poll())
        self.assertEqual(self.replay(os.path.join(self.data, "log")), b"1\n2\n3\n")
        self.assertIn("its process still runs", self.stderr)
        self.assertIn("lines-0: read up to offset 3", self.stderr)

    def test_from_the_log_folder_of_another_data_directory(self):
        self.weir("topic", "create", "lines", "--partitions", "2")
        self.weir("produce", "lines", "--parse-key", "--key-separator", "=", stdin=b"a=1\nb=2\nc=3\n")
        source = self.consumed("lines")
        log = os.path.join(self.data, "log")
        self.data = os.path.join(self.folder, "other")
        self.replay(log, "--to", "lines")
        self.assertEqual(self.consumed("lines"), source)


class Applications(ReplayCase):
    def words(self, *arguments, **keywords):
        return dict((word, count) for count, word in table(self.word_count(*arguments, **keywords)))

    def test_word_count_reads_its_input_from_the_folder(self):
        folder = os.path.join(WHOLE, "2-snapshot")
        values = [value for partition in kafka_values("2-snapshot", "orders") for _, value in partition]
        expected = {}
        for value in values:
            for word in value.replace("-", " ").encode().split():
                expected[word] = expected.get(word, 0) + 1
        self.assertEqual(self.words("--from-dir", folder, "--input", "orders"), expected)
        # Offsets are kept: nothing counts twice, also where the directory has a topic of that name.
        self.weir("topic", "create", "orders")
        self.weir("produce", "orders", stdin=b"not seen\n")
        self.assertEqual(self.words("--from-dir", folder, "--input", "orders"), expected)
        # A new application id begins at the start.
        self.assertEqual(self.words("--from-dir", folder, "--input", "orders", "--application-id", "new", "--output", "o2"),
                         expected)

    def test_the_tool_knows_such_an_application(self):
        folder = os.path.join(WHOLE, "2-snapshot")
        counts = self.words("--from-dir", folder, "--input", "orders")
        self.assertIn(b"orders", self.weir("app", "describe", "word-count"))
        self.assertIn(b"orders.from-wqwhf1MZQQe_2SlY9gg3jA", self.weir("group", "describe", "word-count"))
        self.weir("app", "reset", "word-count", "--execute")
        self.weir("topic", "delete", "word-counts")
        self.assertEqual(self.words("--from-dir", folder, "--input", "orders"), counts)

    def test_averages_reads_its_input_from_the_folder(self):
        quotes = b"symbol,date,price\nA,2026-01-01,1\nA,2026-01-02,2\nB,2026-01-01,10\n"
        first = self.run_program("averages", "--quiet", "--until-end", "--quotes", "-", stdin=quotes)
        log = os.path.join(self.data, "log")
        self.data = os.path.join(self.folder, "other")
        again = self.run_program("averages", "--quiet", "--until-end", "--from-dir", log)
        self.assertEqual(again, first)
        self.assertEqual(again.splitlines(), [b"A\t1.5\t2", b"B\t10\t1"])

    def test_damage_does_not_stop_it_and_is_reported(self):
        folder = os.path.join(LOG, "crash-small", "flip-old-body")
        self.word_count("--from-dir", folder, "--input", "flip-old-body", code=DAMAGE)
        self.assertIn("offsets 106 to 107 are lost", self.stderr)

    def test_mistakes(self):
        folder = os.path.join(WHOLE, "1-stopped")
        self.assert_fails(NOT_FOUND, "lines", "orders", program="word_count", arguments=("--from-dir", folder, "--until-end"))
        self.assertFalse(os.path.exists(self.data))
        self.assert_fails(USAGE, "--text", "--from-dir", program="word_count",
                          arguments=("--from-dir", folder, "--text", "-"))
        self.assert_fails(USAGE, "--quotes", "--from-dir", program="averages",
                          arguments=("--from-dir", folder, "--quotes", "-"))


if __name__ == "__main__":
    unittest.main()
