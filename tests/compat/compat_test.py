"""Kafka 4.3.1 on what Weir wrote: DumpLogSegments checks every file, a broker serves a copy of log/."""
import json
import os
import re
import shutil
import tempfile
import unittest

import kafka
from directory import Directory, fill

# What DumpLogSegments prints of healthy files. "is empty": an index without an entry.
HEALTHY = re.compile(r"Dumping \S+$|Log starting offset: \d+$|\S+\.(index|timeindex) is empty\.$|"
                     r"baseOffset: \d+ .* isvalid: true$|\| offset: \d+ |offset: \d+ position: \d+$|"
                     r"timestamp: \d+ offset: \d+$|Snapshot end offset: \d+, epoch: \d+$")
# Its complaint about every segment with a base offset above 0.
FIRST_OF_A_SEGMENT = (re.compile(r"Non-consecutive offsets in \S+$"), re.compile(r"  -1 is followed by \d+$"))


def complaints(lines):
    return [line for line in lines
            if line and not HEALTHY.match(line) and not any(one.match(line) for one in FIRST_OF_A_SEGMENT)]


def payloads(lines):
    """The decoded keys and values of a dump: [(key or None, value or None)]."""
    found = []
    for line in lines:
        match = re.match(r"\| offset: \d+ .*?headerKeys: \[.*?\](?: key: (\{.*?\}))?(?: payload: (.*))?$", line)
        if match:
            found.append(tuple(json.loads(part) if part and part.startswith("{") else None for part in match.groups()))
    return found


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kafka.require()
        cls.folder = tempfile.mkdtemp(prefix="weir-compat-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.directory = cls.make(os.path.join(cls.folder, "data"))

    @classmethod
    def make(cls, path):
        return fill(path)

    def copy(self):
        path = os.path.join(self.folder, "log")
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.directory.log, path)
        return path


class Files(Case):
    def test_every_segment_and_index_is_accepted(self):
        files = self.directory.files(".log", ".index", ".timeindex")
        self.assertGreater(len(files), 100)
        lines = kafka.dump(self.directory.log, files, "--deep-iteration")
        self.assertEqual(complaints(lines), [])
        self.assertEqual(sum(line.startswith("Dumping ") for line in lines), len(files))
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            self.assertTrue(any(f"compresscodec: {codec} " in line for line in lines), codec)
        for kind in ("CreateTime", "LogAppendTime"):
            self.assertTrue(any(f" {kind}: " in line for line in lines), kind)
        self.assertTrue(any(line.startswith("offset: ") for line in lines), "no offset index has an entry")
        self.assertTrue(any("partitionLeaderEpoch: 2 " in line for line in lines), "no epoch was raised")

    def test_indexes_pass_the_sanity_check(self):
        files = self.directory.files(".index", ".timeindex")
        lines = kafka.dump(self.directory.log, files, "--index-sanity-check")
        bad = [line for line in lines if not re.match(r"Dumping |\S+ passed sanity check\.$|\S+ is empty\.$", line)]
        self.assertEqual(bad, [])

    # Without this the tests above might accept anything.
    def test_damage_is_noticed(self):
        log = self.copy()
        folder = os.path.join(log, "codec-none-0")
        segments = sorted(name for name in os.listdir(folder) if name.endswith(".log"))
        with open(os.path.join(folder, segments[1]), "r+b") as file:
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))
        index = next(name for name in sorted(os.listdir(folder)) if name.endswith(".index")
                     and os.path.getsize(os.path.join(folder, name)) > 8)
        with open(os.path.join(folder, index), "r+b") as file:
            file.write(bytes([0, 0, 0, 1]))
        self.assertNotEqual(complaints(kafka.dump(log, [f"codec-none-0/{segments[1]}"], "--deep-iteration")), [])
        self.assertNotEqual(complaints(kafka.dump(log, [f"codec-none-0/{index}"])), [])

    def test_the_metadata_log_names_the_topics(self):
        lines = kafka.dump(self.directory.log, ["__cluster_metadata-0/00000000000000000000.log"],
                           "--cluster-metadata-decoder")
        self.assertEqual(complaints(lines), [])
        topics, partitions, configs, brokers = {}, {}, {}, []
        for _, record in payloads(lines):
            if record is None:
                continue
            data = record["data"]
            if record["type"] == "TOPIC_RECORD":
                topics[data["topicId"]] = data["name"]
                configs[data["name"]] = {}
            elif record["type"] == "PARTITION_RECORD":
                partitions.setdefault(data["topicId"], set()).add(data["partitionId"])
                self.assertEqual(data["directories"], brokers[0]["logDirs"])
            elif record["type"] == "CONFIG_RECORD" and data["resourceType"] == 2:
                config = configs[data["resourceName"]]
                config[data["name"]] = data["value"]
            elif record["type"] == "REMOVE_TOPIC_RECORD":
                del topics[data["topicId"]]
            elif record["type"] == "REGISTER_BROKER_RECORD":
                brokers.append(data)
        described = self.directory.topics()
        self.assertEqual({name: topic["id"] for name, topic in described.items()},
                         {name: topic_id for topic_id, name in topics.items()})
        for topic_id, name in topics.items():
            self.assertEqual(partitions[topic_id], set(range(len(described[name]["partitions"]))), name)
            stored = {("segment.bytes" if key == "internal.segment.bytes" else key): value
                      for key, value in configs[name].items() if value is not None}
            self.assertEqual(stored, described[name]["config"], name)
        with open(os.path.join(self.directory.log, ".kafka_cleanshutdown"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"version": 0, "brokerEpoch": brokers[0]["brokerEpoch"]})

    def test_the_feature_levels_of_the_bootstrap_checkpoint_are_those_of_the_log(self):
        def levels(path):
            lines = kafka.dump(self.directory.log, [path], "--cluster-metadata-decoder")
            return [record["data"] for _, record in payloads(lines)
                    if record is not None and record["type"] == "FEATURE_LEVEL_RECORD"]
        self.assertEqual(levels("bootstrap.checkpoint"), levels("__cluster_metadata-0/00000000000000000000.log"))
        self.assertEqual(len(levels("bootstrap.checkpoint")), 6)

    def test_the_offsets_topic_holds_what_groups_committed(self):
        files = [file for file in self.directory.files(".log") if file.startswith("__consumer_offsets-")]
        lines = kafka.dump(self.directory.log, files, "--offsets-decoder")
        self.assertEqual(complaints(lines), [])
        committed = {}
        for key, value in payloads(lines):
            if key is None or key["type"] != "1":
                continue
            place = tuple(key["data"][name] for name in ("group", "topic", "partition"))
            if value is None:
                committed.pop(place, None)
            else:
                committed[place] = value["data"]
        ours = self.directory.committed()
        self.assertGreater(len(ours), 5)
        self.assertEqual({place: (data["offset"], data["leaderEpoch"], data["metadata"])
                          for place, data in committed.items()},
                         {place: (row["currentOffset"], row["leaderEpoch"], row["metadata"])
                          for place, row in ours.items()})


class Broker(Case):
    def test_a_broker_on_a_copy_serves_the_same(self):
        described = self.directory.topics()
        log = self.copy()
        with kafka.Broker(self.folder, log) as broker:
            topics = broker.wait_for_leaders()
            with self.subTest("topics"):
                self.assertEqual({name: (topic_id, count) for name, (topic_id, count, _) in topics.items()},
                                 {name: (topic["id"], len(topic["partitions"])) for name, topic in described.items()})
            with self.subTest("settings"):
                self.check_settings(broker, described)
            with self.subTest("borders"):
                self.check_borders(broker, described)
            with self.subTest("committed offsets"):
                self.assertEqual(broker.committed(), {place: row["currentOffset"]
                                                      for place, row in self.directory.committed().items()})
            # The offsets topic grows by the groups of Kafka's own consumers; what it held was asked for above.
            for name, topic in described.items():
                if name != "__consumer_offsets":
                    with self.subTest(topic=name):
                        self.check_records(broker, name, topic)
            with self.subTest("end"):
                self.assertIn(broker.stop(), (0, 143))
                self.check_output(broker.text())
        self.check_metadata(log)

    def check_settings(self, broker, described):
        """kafka-configs shows every setting that a broker knows, and does not stumble over the others."""
        output = broker.tool("kafka.admin.ConfigCommand", "--describe", "--entity-type", "topics").decode()
        shown = {}
        for line in output.splitlines():
            if match := re.match(r"Dynamic configs for topic (\S+) are:$", line):
                settings = shown.setdefault(match.group(1), {})
            elif match := re.match(r"  (\S+?)=(\S*) sensitive=", line):
                settings[match.group(1)] = match.group(2)
        for name, topic in described.items():
            expected = {key: value for key, value in topic["config"].items() if not key.startswith("weir.")}
            if int(expected.get("segment.bytes", 1 << 20)) < 1 << 20:
                expected["internal.segment.bytes"] = expected.pop("segment.bytes")
            got = {key: value for key, value in shown.get(name, {}).items() if not key.startswith("weir.")}
            self.assertEqual(got, expected, name)

    def check_borders(self, broker, described):
        for time_spec, field in ((-2, "logStartOffset"), (-1, "highWatermark")):
            offsets = broker.offsets(time_spec)
            for name, topic in described.items():
                for partition in topic["partitions"]:
                    self.assertEqual(offsets[name, partition["partition"]], partition[field],
                                     (name, partition["partition"], field))

    def check_records(self, broker, name, topic):
        expected = self.directory.records(name)
        held = sum(part["highWatermark"] - part["logStartOffset"] for part in topic["partitions"])
        self.assertEqual(len(expected), held)
        if not expected:
            return
        got = broker.records(name, len(expected))
        kinds = {record.pop("kind") for record in got}
        self.assertEqual(got, expected)
        if name == "append-time":
            self.assertEqual(kinds, {"LogAppendTime"})
        elif name != "altered":
            self.assertEqual(kinds, {"CreateTime"})

    def check_output(self, text):
        self.assertIn("since clean shutdown file was found", text)
        bad = [line for line in text.splitlines() if re.match(r"(WARN|ERROR|FATAL) ", line)
               and not re.search("Performing controller activation|NetworkClient that has already been closed", line)]
        self.assertEqual(bad, [])
        # A controller recovers its metadata log at every start, whatever the end before was.
        text = "".join(line for line in text.splitlines(True) if "partition=__cluster_metadata-0" not in line)
        for word in ("stray", "Rebuilding", "Recovering unflushed", "corrupt"):
            self.assertNotIn(word, text)

    def check_metadata(self, log):
        """The controller took the broker's last end for a clean one: no leader was elected uncleanly."""
        lines = kafka.dump(log, ["__cluster_metadata-0/00000000000000000000.log"], "--cluster-metadata-decoder")
        changes = [record["data"] for _, record in payloads(lines)
                   if record is not None and record["type"] == "PARTITION_CHANGE_RECORD"]
        self.assertTrue(any(change.get("leader") == 1 for change in changes))
        self.assertEqual([change for change in changes if change.get("leaderRecoveryState", 0) != 0], [])


class Transactions(Case):
    """Transactions, a group, a compacted table and a window with retention, as the program of the crash tests made
    them: it says what was answered."""

    LOG_LINE = re.compile(r"producerId: \d+ producerEpoch: -?\d+ coordinatorEpoch: -?\d+ currentTxnFirstOffset: |"
                          r"version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+$")

    @classmethod
    def make(cls, path):
        directory = Directory(path)
        cls.report = Report(directory.program("crash_transactions", "7", "0", "close", "1000000000", "0", data=False))
        directory.weir("topic", "compact", "table")
        return directory

    def test_every_file_is_accepted(self):
        for suffix in (".log", ".index", ".timeindex", ".snapshot", ".txnindex"):
            files = [file for file in self.directory.files(suffix) if not file.startswith("table-0")]
            self.assertTrue(files, suffix)
            lines = kafka.dump(self.directory.log, files, *(["--deep-iteration"] if suffix == ".log" else []))
            bad = [line for line in complaints(lines) if not self.LOG_LINE.match(line)]
            self.assertEqual(bad, [], suffix)
            if suffix in (".snapshot", ".txnindex"):
                self.assertTrue(any(self.LOG_LINE.match(line) for line in lines), suffix)

    def test_snapshots_of_the_metadata_log_hold_what_it_no_longer_has(self):
        folder = "__cluster_metadata-0"
        names = sorted(os.listdir(os.path.join(self.directory.log, folder)))
        snapshots = [f"{folder}/{name}" for name in names if name.endswith(".checkpoint")]
        segments = [f"{folder}/{name}" for name in names if name.endswith(".log")]
        self.assertEqual(len(snapshots), 2)
        self.assertNotIn(f"{folder}/{0:020}.log", segments)
        for snapshot in snapshots:
            topics = {}
            lines = kafka.dump(self.directory.log, [snapshot, *segments], "--cluster-metadata-decoder")
            self.assertEqual(complaints(lines), [])
            self.assertTrue(any("SnapshotHeader" in line for line in lines), snapshot)
            self.assertTrue(any("SnapshotFooter" in line for line in lines), snapshot)
            for _, record in payloads(lines):
                if record is not None and record["type"] == "TOPIC_RECORD":
                    topics[record["data"]["name"]] = record["data"]["topicId"]
            self.assertEqual(topics, {name: topic["id"] for name, topic in self.directory.topics().items()})

    def test_the_compacted_log_has_holes_and_no_other_fault(self):
        files = [file for file in self.directory.files(".log") if file.startswith("table-0")]
        bad = complaints(kafka.dump(self.directory.log, files, "--deep-iteration"))
        self.assertTrue(bad)
        self.assertEqual([line for line in bad if not re.match(r"  \d+ is followed by \d+$", line)], [])

    def test_the_transaction_topic_holds_how_they_ended(self):
        files = [file for file in self.directory.files(".log") if file.startswith("__transaction_state-")]
        lines = kafka.dump(self.directory.log, files, "--transaction-log-decoder")
        self.assertEqual(complaints(lines), [])
        last = {}
        for key, value in payloads(lines):
            last[key["data"]["transactionalId"]] = value["data"]["transactionStatus"] if value else None
        self.assertEqual(set(last), {"tx-0", "tx-1"})
        self.assertLessEqual(set(last.values()), {4, 5}, "complete commit and complete abort")

    def test_weir_reads_what_was_committed(self):
        values = self.directory.weir("consume", "lines", "--isolation-level", "read_committed").decode().splitlines()
        self.check_lines(values)
        self.assertGreater(len(self.directory.weir("consume", "lines").decode().splitlines()), len(values))

    def test_a_broker_on_a_copy_serves_the_same(self):
        with kafka.Broker(self.folder, self.copy()) as broker:
            broker.wait_for_leaders()
            with self.subTest("committed offsets"):
                self.assertEqual(broker.committed(), self.report.offsets)
            with self.subTest("read_committed"):
                found = broker.records("lines", len(self.report.visible()), "--isolation-level", "read_committed")
                self.check_lines([record["value"].decode() for record in found])
            with self.subTest("the compacted table"):
                expected = self.directory.records("table")
                found = broker.records("table", len(expected))
                for record in found:
                    record.pop("kind")
                self.assertEqual(found, expected)
                table = {record["key"].decode(): int(record["value"] or 0) for record in found}  # the last one counts
                self.assertEqual({key: value for key, value in table.items() if value},
                                 {key: value for key, value in self.report.table.items() if value})
                self.assertLess(len(found), self.report.puts)
            with self.subTest("the window"):
                start, end = broker.offsets(-2)["window", 0], broker.offsets(-1)["window", 0]
                self.assertGreater(start, 0)
                found = broker.records("window", end - start)
                self.assertEqual([int(record["value"]) for record in found], list(range(start, end)))
            with self.subTest("end"):
                self.assertIn(broker.stop(), (0, 143))
                bad = [line for line in broker.text().splitlines() if re.match(r"(ERROR|FATAL) ", line)]
                self.assertEqual(bad, [])

    def check_lines(self, values):
        self.assertEqual(sorted(value.rsplit("/", 1)[0] for value in values), sorted(self.report.visible()))


class Report:
    """What crash_transactions said."""

    def __init__(self, output):
        self.sent, self.ended, self.offset_of = {}, {}, {}
        self.plain = self.puts = 0
        self.table, self.offsets = {}, {}
        sent_last, committing = 0, None
        for line in output.decode().splitlines():
            what, *words = line.split()
            if what == "sending":
                records = self.sent.setdefault(words[0], [])
                number = sum(1 for partition, _ in records if partition == words[1])
                records.append((words[1], number))
            elif what == "offset":
                sent_last += 1
                self.offset_of[words[0]] = (words[1], sent_last)
            elif what == "ended":
                self.ended[words[0]] = words[1] == "0"  # TransactionOutcome::kCommitted
            elif what == "plain-ack":
                self.plain += 1
            elif what == "put":
                self.puts += 1
                self.table[words[0]] = int(words[1])
            elif what == "committing":
                committing = words
            elif what == "committed":
                self.offsets["readers", "lines", int(words[0])] = int(committing[1])
        last = {}
        for transaction, (group, order) in self.offset_of.items():
            if self.ended.get(transaction) and order > last.get(group, (0, ""))[0]:
                last[group] = (order, transaction)
        for group, (_, transaction) in last.items():
            self.offsets[group, "input", 0] = int(transaction)

    def visible(self):
        return ["plain"] * self.plain + [f"{transaction}/{partition}/{number}"
                                         for transaction, records in self.sent.items() if self.ended.get(transaction)
                                         for partition, number in records]


class Settings(Case):
    """Every setting at both ends of its range: a broker does not start on a value that it refuses."""

    @classmethod
    def make(cls, path):
        directory = Directory(path)
        for end in ("lowest", "highest"):
            settings = []
            for setting in directory.json("config", "list", "topic"):
                value = cls.end_of(setting, end)
                settings += ["--config", f"{setting['name']}={value}"]
            directory.create(end, *settings)
        return directory

    @staticmethod
    def end_of(setting, end):
        first = end == "lowest"
        if setting["name"] == "min.cleanable.dirty.ratio":
            return "0.0" if first else "1.0"
        if setting["name"] == "cleanup.policy":
            return "delete" if first else "compact,delete"
        if match := re.match(r"(-?\d+) to (-?\d+)$", setting["range"]):
            return match.group(1 if first else 2)
        if match := re.match(r"(-?\d+) or more$", setting["range"]):
            return match.group(1) if first else str(2**63 - 1)
        return setting["range"].split(",")[0 if first else -1]

    def test_a_broker_starts_with_both_ends_of_every_range(self):
        described = self.directory.topics()
        with kafka.Broker(self.folder, self.copy()) as broker:
            topics = broker.wait_for_leaders()
            self.assertEqual(set(topics), {"lowest", "highest"})
            Broker.check_settings(self, broker, described)


if __name__ == "__main__":
    unittest.main()
