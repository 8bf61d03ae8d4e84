"""The weir tool as a user runs it: every command, good and bad input, exit codes."""
import json
import os
import shutil
import subprocess
import unittest

from support import Case

class Topics(Case):
    def test_their_life(self):
        self.assertEqual(self.weir("topic", "create", "orders", "--partitions", "2", "--config", "segment.ms=1000"),
                         b"Created topic orders.\n")
        self.assertEqual(self.weir("topic", "list"), b"orders\n")
        described = json.loads(self.weir("topic", "describe", "orders", "-o", "json"))
        self.assertEqual((described["topic"], described["config"]), ("orders", {"segment.ms": "1000"}))
        self.assertEqual([p["logEndOffset"] for p in described["partitions"]], [0, 0])
        self.assertEqual(self.weir("topic", "delete", "orders"), b"Deleted topic orders.\n")
        self.assertEqual(self.weir("topic", "list"), b"")

    def test_mistakes(self):
        self.weir("topic", "create", "orders")
        self.assert_fails(1, "exists already", arguments=("topic", "create", "orders"))
        self.assert_fails(2, "A-Z a-z 0-9", arguments=("topic", "create", "a b"))
        self.assert_fails(2, "retention.msx", "retention.ms", arguments=("topic", "create", "x", "--config",
                                                                       "retention.msx=1"))
        self.assert_fails(2, "segment.bytes", "lots", arguments=("topic", "create", "x", "--config",
                                                                 "segment.bytes=lots"))
        self.assert_fails(2, "name=value", arguments=("topic", "create", "x", "--config", "novalue"))
        self.assert_fails(3, "order", "did you mean orders?", arguments=("topic", "describe", "order"))
        self.assert_fails(3, "does not exist", arguments=("topic", "delete", "nothing"))


class Records(Case):
    def consume(self, *arguments):
        return [json.loads(line) for line in self.weir("consume", *arguments, "-o", "json").splitlines()]

    def test_what_is_produced_is_consumed(self):
        self.weir("topic", "create", "t", "--partitions", "2")
        self.weir("produce", "t", "--parse-key", "--key-separator", "=", "--partition", "1",
                  stdin=b"k=v\n=empty key\nbytes=\xff\xfe\nk=a=b")
        records = self.consume("t")
        self.assertEqual([(r["partition"], r["offset"], r["key"], r["value"]) for r in records],
                         [(1, 0, "k", "v"), (1, 1, "", "empty key"), (1, 2, "bytes", {"hex": "fffe"}),
                          (1, 3, "k", "a=b")])
        self.assertEqual(records[0]["topic"], "t")
        self.assertEqual(records[0]["headers"], [])
        self.assertGreater(records[0]["timestamp"], 1_600_000_000_000)
        self.assertEqual(self.weir("consume", "t", "--partition", "0"), b"")
        self.assertEqual(self.weir("consume", "t", "--print-key", "--separator", ":", "--max-messages", "1"), b"k:v\n")

    def test_a_line_without_a_key_is_a_null_key(self):
        self.weir("topic", "create", "t")
        self.weir("produce", "t", stdin=b"v\n\n")
        self.assertEqual([(r["key"], r["value"]) for r in self.consume("t")], [(None, "v"), (None, "")])

    # cases.md N17
    def test_offsets_outside_the_log_are_errors_that_name_its_borders(self):
        self.weir("topic", "create", "t")
        self.weir("produce", "t", stdin=b"".join(b"%d\n" % i for i in range(2000)))
        self.assertEqual(self.weir("consume", "t", "--offset", "1999"), b"1999\n")
        self.assertEqual(self.weir("consume", "t", "--offset", "2000"), b"")
        self.assert_fails(1, "2001", "0 to 2000", arguments=("consume", "t", "--offset", "2001"))
        self.assert_fails(2, "-5", arguments=("consume", "t", "--offset", "-5"))
        self.assertEqual(self.weir("consume", "t", "--offset", "5", "--max-messages", "2"), b"5\n6\n")

    def test_bad_lines_are_named_and_the_others_written(self):
        self.weir("topic", "create", "t")
        self.weir("produce", "t", "--parse-key", stdin=b"a\t1\nnokey\nb\t2\n", code=1)
        self.assertIn("line 2", self.stderr)
        self.weir("produce", "t", stdin=b"x" * 2_000_000 + b"\n3\n", code=1)
        for part in ("line 1", "2000000", "max.request.size"):
            self.assertIn(part, self.stderr)
        self.assertEqual(self.weir("consume", "t"), b"1\n2\n3\n")

    def test_mistakes(self):
        self.assert_fails(3, "no Weir data directory", arguments=("consume", "t"))
        self.weir("topic", "create", "t")
        self.assert_fails(3, "nope", "topic create", arguments=("produce", "nope"), stdin=b"x\n")
        self.assert_fails(3, "partitions 0 to 0", arguments=("consume", "t", "--partition", "3"))
        self.assert_fails(2, "acks", arguments=("produce", "t", "--config", "acks=7"), stdin=b"x\n")

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        self.weir("topic", "create", "t")
        self.weir("produce", "t", stdin=b"line\n" * 200_000)
        done = subprocess.run(["bash", "-c", '"$@" | head -n 1', "-", *self.command("weir", "consume", "t")],
                              capture_output=True, timeout=60, check=False)
        self.assertEqual((done.stdout, done.stderr), (b"line\n", b""))


class Log(Case):
    """weir log verify, seal, recover and dump's decoders."""

    def setUp(self):
        super().setUp()
        self.weir("topic", "create", "t")
        for value in (b"one\n", b"two\n", b"three\n"):
            self.weir("produce", "t", stdin=value)
        self.segment = os.path.join(self.data, "log", "t-0", "0" * 20 + ".log")
        self.size = os.path.getsize(self.segment)

    def crash(self, tail=b""):
        os.remove(os.path.join(self.data, "log", ".kafka_cleanshutdown"))
        with open(self.segment, "ab") as file:
            file.write(tail)

    def rows(self, *arguments, code=0):
        return [json.loads(line) for line in self.weir(*arguments, "-o", "json", code=code).splitlines()]

    def test_a_closed_directory_is_sound(self):
        text = self.weir("log", "verify", self.data).decode()
        self.assertRegex(text, r"^sound: 2 partitions, 2 segments, \d+ batches, \d+ records, \d+ bytes; 0 of damage, 0 notes\n$")
        self.assertEqual(self.rows("log", "verify", os.path.dirname(self.segment)),
                         [{"sound": True, "partitions": 1, "segments": 1, "batches": 3, "records": 3, "bytes": self.size,
                           "damage": 0, "notes": 0}])

    def test_damage_is_named_with_its_place_and_the_code_is_6(self):
        third = self.size // 3  # three batches, the first two of one size
        with open(self.segment, "r+b") as file:
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))
        finding, totals = self.rows("log", "verify", self.data, code=6)
        self.assertEqual((finding["severity"], finding["file"]), ("damage", self.segment))
        self.assertEqual((finding["firstOffset"], finding["nextOffset"]), (1, 2))
        self.assertLessEqual(finding["position"], 100)
        self.assertGreater(finding["endPosition"], 100)
        self.assertLess(abs(finding["position"] - third), 5)
        self.assertIn("crc", finding["what"])
        self.assertEqual((totals["sound"], totals["damage"]), (False, 1))
        text = self.weir("log", "verify", self.data, code=6).decode()
        self.assertIn(f"damage: {self.segment}, bytes {finding['position']} to {finding['endPosition']}, offset 1: ", text)
        self.assertRegex(text, r"\ndamaged: 2 partitions, ")

    def test_a_torn_tail_is_a_note_after_a_crash_and_damage_after_a_clean_close(self):
        with open(self.segment, "ab") as file:
            file.write(b"torn")
        self.weir("log", "verify", self.data, code=6)
        os.remove(os.path.join(self.data, "log", ".kafka_cleanshutdown"))
        finding, totals = self.rows("log", "verify", self.data)
        self.assertEqual((finding["severity"], finding["position"], finding["firstOffset"]), ("note", self.size, 3))
        self.assertTrue(totals["sound"])

    def test_several_paths_are_summed_and_the_worst_decides(self):
        totals = self.rows("log", "verify", os.path.dirname(self.segment), self.segment)[-1]
        self.assertEqual((totals["partitions"], totals["records"]), (2, 6))
        self.assert_fails(3, "nothing", arguments=("log", "verify", os.path.join(self.folder, "nothing"), self.segment))

    def test_what_is_no_log_is_refused(self):
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        with open(os.path.join(other, "photo.jpg"), "wb") as file:
            file.write(b"x")
        for path in (other, os.path.join(other, "photo.jpg")):
            for verb in ("verify", "dump"):
                self.assert_fails(2, path, arguments=("log", verb, path))
        for verb in ("seal", "recover"):
            self.assert_fails(3, other, "no Weir data directory", arguments=("log", verb, other))
        self.assertEqual(os.listdir(other), ["photo.jpg"])

    def test_recover_says_what_was_cut(self):
        self.crash(b"torn")
        row = [row for row in self.rows("log", "recover", self.data) if row.get("partition") == "t-0"][0]
        self.assertEqual((row["cutBytes"], row["cutFromOffset"], row["damaged"], row["failure"]), (4, 3, [], None))
        self.assertEqual(row["scannedBytes"], self.size + 4)
        self.assertIn(self.segment, row["reason"])
        self.assertEqual(os.path.getsize(self.segment), self.size)
        self.assertEqual(self.weir("log", "recover").decode(), f"{self.data} was closed cleanly: nothing to recover\n")
        self.assertEqual(self.weir("consume", "t"), b"one\ntwo\nthree\n")

    def test_recover_names_what_files_without_a_write_ahead_log_have_lost(self):
        os.remove(os.path.join(self.data, "log", "recovery-point-offset-checkpoint"))
        shutil.rmtree(os.path.join(self.data, "wal"))
        self.crash()
        with open(self.segment, "r+b") as file:
            file.seek(100)
            file.write(b"\xff\xff")
        text = self.weir("log", "recover", code=0).decode()
        self.assertIn("t-0: ", text)
        self.assertIn("bytes cut from offset 1 on", text)

    def test_recover_reports_durable_damage_with_code_6(self):
        self.crash()
        os.truncate(self.segment, self.size - 1)  # below the recovery point: the third record was durable
        text = self.weir("log", "recover", code=6).decode()
        self.assertIn("t-0: damaged: ", text)
        self.assertIn("offsets 2 to 2 ", text)

    def test_seal_makes_the_log_complete_by_itself(self):
        self.crash(b"torn")
        text = self.weir("log", "seal", self.data).decode()
        self.assertIn("4 bytes cut from offset 3 on", text)
        self.assertIn("is complete by itself, after a recovery", text)
        self.assertTrue(os.path.exists(os.path.join(self.data, "log", ".kafka_cleanshutdown")))
        self.assertEqual(self.rows("log", "seal"), [{"sealed": os.path.join(self.data, "log"), "wasClean": True}])
        copy = os.path.join(self.folder, "copy")
        shutil.copytree(os.path.join(self.data, "log"), copy)
        self.assertEqual(self.rows("log", "verify", copy)[-1]["notes"], 0)

    def test_dump_decodes_by_topic_or_as_it_is_told(self):
        self.weir("consume", "t", "--group", "g")
        partition = [name for name in os.listdir(os.path.join(self.data, "log")) if name.startswith("__consumer_offsets-")
                     and os.path.getsize(os.path.join(self.data, "log", name, "0" * 20 + ".log")) > 0][0]
        folder = os.path.join(self.data, "log", partition)
        decoded = self.rows("log", "dump", folder)[0]["decoded"]
        self.assertIn({"group": "g", "topic": "t", "partition": 0}, [record["key"] for record in decoded])
        copy = os.path.join(self.folder, "offsets-0")
        shutil.copytree(folder, copy)
        self.assertNotIn("decoded", self.rows("log", "dump", copy)[0])
        self.assertEqual(self.rows("log", "dump", copy, "--offsets-decoder")[0]["decoded"], decoded)
        self.assertNotIn("decoded", self.rows("log", "dump", folder, "--no-decoder")[0])
        self.assertNotIn("records", self.rows("log", "dump", folder, "--skip-records")[0])
        metadata = self.rows("log", "dump", os.path.join(self.data, "log", "__cluster_metadata-0"))[0]
        self.assertIn("TOPIC_RECORD", [record["type"] for record in metadata["decoded"]])
        checkpoints = self.rows("log", "dump", os.path.join(self.data, "log"))[0]["checkpoints"]
        self.assertEqual(checkpoints["recovery-point-offset-checkpoint"]["t-0"], 3)


class Damage(Case):
    def setUp(self):
        super().setUp()
        self.weir("topic", "create", "t")
        for value in (b"one\n", b"two\n", b"three\n"):
            self.weir("produce", "t", stdin=value)
        self.segment = os.path.join(self.data, "log", "t-0", "0" * 20 + ".log")

    def test_a_torn_tail_is_cut_and_reported(self):
        os.remove(os.path.join(self.data, "log", ".kafka_cleanshutdown"))
        with open(self.segment, "ab") as file:
            file.write(b"\0\0\0\0\0\0\0\3\0\0\1\0 torn")
        self.weir("produce", "t", stdin=b"four\n")
        self.assertIn("recovered partition=t-0", self.stderr)
        self.assertEqual(self.weir("consume", "t"), b"one\ntwo\nthree\nfour\n")

    def test_a_flipped_byte_is_reported_where_it_is(self):
        with open(self.segment, "r+b") as file:
            file.seek(os.path.getsize(self.segment) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        self.assert_fails(6, "CORRUPT_MESSAGE", "t-0", arguments=("consume", "t"))
        dumped = json.loads(self.weir("log", "dump", os.path.dirname(self.segment), "-o", "json"))
        self.assertEqual(len(dumped["damaged"]), 1)
        self.assertEqual([r["value"] for r in dumped["records"]], [b"one".hex(), b"three".hex()])

    def test_missing_and_lying_indexes_are_made_anew(self):
        for name in os.listdir(os.path.dirname(self.segment)):
            if name.endswith(".index") or name.endswith(".timeindex"):
                with open(os.path.join(os.path.dirname(self.segment), name), "wb") as file:
                    file.write(b"\0\0\0\1\0\0\xff\0" * 3)
        self.assertEqual(self.weir("consume", "t", "--offset", "1"), b"two\nthree\n")
        for name in os.listdir(os.path.dirname(self.segment)):
            if name.endswith(".index") or name.endswith(".timeindex"):
                os.remove(os.path.join(os.path.dirname(self.segment), name))
        self.assertEqual(self.weir("consume", "t", "--offset", "2"), b"three\n")

    def test_a_folder_of_another_program_is_left_alone(self):
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        with open(os.path.join(other, "photo.jpg"), "wb") as file:
            file.write(b"x")
        self.data = other
        self.assert_fails(2, "photo.jpg", "--data", arguments=("topic", "create", "t"))
        self.assertEqual(os.listdir(other), ["photo.jpg"])

    def test_a_file_is_no_data_directory(self):
        self.data = self.segment
        self.assert_fails(2, "is a file", arguments=("topic", "create", "t"))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "a full disk needs root and mount")
    def test_a_full_disk_is_said_and_loses_nothing(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no tmpfs here: {mounted.stderr.decode()}")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        self.data = os.path.join(disk, "data")
        self.weir("topic", "create", "t")
        self.weir("produce", "t", stdin=b"before\n")
        self.weir("produce", "t", stdin=(b"x" * 1000 + b"\n") * 12_000, code=1)
        self.assertIn("No space left on device", self.stderr)
        self.assertTrue(self.weir("consume", "t").startswith(b"before\n"))


class Tool(Case):
    def test_unknown_commands_and_options_are_usage_errors(self):
        self.assert_fails(2, "topik", "topic", arguments=("topik",))
        self.assert_fails(2, arguments=("topic", "list", "--nonsense"))
        self.assert_fails(2, arguments=())

    def test_version(self):
        self.assertRegex(self.weir("version").decode(), r"^weir \d+\.\d+\.\d+\n$")
        self.assertIn("version", json.loads(self.weir("version", "-o", "json")))

    def test_data_may_stand_anywhere_and_comes_from_the_environment(self):
        self.weir("topic", "create", "t")
        program = self.command("weir")[0]
        for arguments, environment in ((["topic", "list", "--data", self.data], {}),
                                       (["topic", "list"], {"WEIR_DATA": self.data})):
            done = subprocess.run([program, *arguments], env={**os.environ, **environment}, capture_output=True,
                                  check=False)
            self.assertEqual(done.stdout, b"t\n", done.stderr)

    def test_state_of_unknown_applications_and_stores_names_those_that_are(self):
        self.word_count("--text", "-", stdin=b"a b a\n")
        self.assert_fails(3, "word-count", arguments=("state", "get", "other", "counts", "a"))
        self.assert_fails(3, "counts", arguments=("state", "get", "word-count", "other", "a"))
        self.assert_fails(3, "no key", arguments=("state", "get", "word-count", "counts", "zebra"))
        self.assertEqual(self.weir("state", "scan", "word-count", "counts"), b"a\t2\nb\t1\n")
        self.assertEqual(self.weir("state", "scan", "word-count", "counts", "--from", "b"), b"b\t1\n")
        self.assertEqual(json.loads(self.weir("state", "get", "word-count", "counts", "a", "-o", "json"))["value"], 2)


if __name__ == "__main__":
    unittest.main()
