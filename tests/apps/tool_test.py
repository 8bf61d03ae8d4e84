"""The weir tool as somebody meets it for the first time: every command with --help, without arguments, with wrong ones,
and against a data directory that is empty, in use or damaged; then groups, applications and topics that change."""
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from support import DATA, GPL, Case, table

USAGE, NOT_FOUND = 2, 3


class Verb:
    """One command: `good` arguments that fit prepare(), and (arguments, fragments of the message) that do not."""

    def __init__(self, *words, good=(), without=(), wrong=(), writes=False, needs_data=True, stdin=b""):
        self.words, self.good, self.without, self.wrong = words, good, without, wrong
        self.writes, self.needs_data, self.stdin = writes, needs_data, stdin

    def __str__(self):
        return " ".join(self.words)


VERBS = [
    Verb("topic", "create", good=("new",), without=("topic", "--help"), writes=True, wrong=[
        (("a b",), ("a b", "A-Z a-z 0-9")), (("x", "--partitions", "many"), ("--partitions", "many")),
        (("x", "--partitions", "0"), ("x", "0")),
        (("x", "--config", "retention.msx=1"), ("retention.msx", "retention.ms")),
        (("x", "--config", "retention.ms"), ("retention.ms", "name=value"))]),
    Verb("topic", "list", wrong=[(("--nonsense",), ("--nonsense",))]),
    Verb("topic", "describe", good=("lines",), wrong=[(("lines", "words"), ("words",))]),
    Verb("topic", "alter", good=("lines", "--partitions", "2"), without=("topic", "--help"), writes=True, wrong=[
        (("lines",), ("--partitions", "--config")), (("lines", "--partitions", "1"), ("lines", "1", "2 to")),
        (("lines", "--config", "segment.bites=1"), ("segment.bites", "segment.bytes")),
        (("lines", "--config", "segment.ms=1", "--delete-config", "segment.ms"), ("segment.ms", "choose one"))]),
    Verb("topic", "delete-records", good=("lines", "--partition", "0", "--before", "1"), writes=True,
         without=("topic", "--help"), wrong=[
             (("lines",), ("--partition",)), (("lines", "--partition", "0", "--before", "-2"), ("--before", "-1"))]),
    Verb("topic", "compact", good=("__consumer_offsets",), without=("topic", "--help"), writes=True, wrong=[
        (("lines",), ("lines", "cleanup.policy"))]),
    Verb("topic", "delete", good=("lines",), without=("topic", "--help"), writes=True, wrong=[(("lines", "more"), ("more",))]),
    Verb("produce", good=("lines",), without=("topic", "--help"), writes=True, stdin=b"x\n", wrong=[
        (("lines", "--config", "acks=7"), ("acks", "7")), (("lines", "--acks", "7"), ("acks", "7")),
        (("lines", "--compression", "gzap"), ("compression.type", "gzap", "gzip")),
        (("lines", "--parse-key", "--key-separator", ""), ("--key-separator",)),
        (("lines", "--header", "novalue"), ("novalue", "name=value")),
        (("lines", "--partition", "0", "--parse-partition"), ("--parse-partition", "--partition"))]),
    Verb("consume", good=("lines",), without=("topic", "--help"), wrong=[
        (("lines", "--offset", "-5"), ("-5", "from 0")), (("lines", "--time", "noon"), ("noon", "2026-03-01")),
        (("lines", "--offset", "0", "--latest"), ("--offset", "--latest")),
        (("lines", "--value-format", "roman"), ("roman",)), (("lines", "--max-messages", "few"), ("few",))]),
    Verb("replay", good=("--from-dir", os.path.join(DATA, "log", "crash-small", "only-logs")), needs_data=False,
         without=("--from-dir", "--help"), wrong=[
             (("--from-dir", os.path.join(DATA, "texts")), ("texts", "orders-0")),
             (("--from-dir", os.path.join(DATA, "log", "crash-small", "only-logs"), "--from-time", "noon"),
              ("noon", "2026-03-01")),
             (("--from-dir", os.path.join(DATA, "log", "whole-directory", "1-stopped")), ("orders", "--topic"))]),
    Verb("group", "list", wrong=[(("--nonsense",), ("--nonsense",))]),
    Verb("group", "describe", good=("readers",), without=("group", "--help"), wrong=[(("a", "b"), ("b",))]),
    Verb("group", "delete", good=("readers",), without=("group", "--help"), writes=True, wrong=[
        (("a", "b"), ("b",)), (("words",), ("words", "counts", "weir app reset words"))]),
    Verb("group", "reset", good=("readers", "--topic", "lines", "--to-earliest", "--execute"), without=("group", "--help"),
         writes=True, wrong=[
             (("readers",), ("--topic",)), (("readers", "--topic", "lines"), ("--to-earliest", "--to-time")),
             (("readers", "--topic", "lines", "--to-earliest", "--to-latest"), ("more than one",)),
             (("readers", "--topic", "lines", "--to-offset", "-1"), ("-1", "from 0")),
             (("readers", "--topic", "lines", "--to-time", "13:00"), ("13:00", "milliseconds since 1970")),
             (("words", "--topic", "lines", "--to-earliest"), ("words", "counts", "weir app reset words"))]),
    Verb("app", "list", wrong=[(("--nonsense",), ("--nonsense",))]),
    Verb("app", "describe", good=("words",), without=("application", "--help"), wrong=[(("a", "b"), ("b",))]),
    Verb("app", "reset", good=("words", "--execute"), without=("application", "--help"), writes=True, wrong=[
        (("words", "--to-earliest", "--to-latest"), ("more than one",)),
        (("words", "--to-time", "2024-02-30"), ("2024-02-30",))]),
    Verb("state", "get", good=("words", "counts", "a"), without=("application", "--help"), wrong=[(("words",), ("store",))]),
    Verb("state", "scan", good=("words", "counts"), without=("application", "--help"), wrong=[(("words",), ("store",))]),
    Verb("dlq", "list", good=("lines",), without=("topic", "--help"), wrong=[
        (("lines", "more"), ("more",)), (("lines", "--reason", "bored"), ("bored", "exhausted"))]),
    Verb("dlq", "show", good=("lines", "--partition", "0", "--offset", "2"), without=("--partition", "--help"), wrong=[
        (("lines",), ("--partition",)), (("lines", "--partition", "x", "--offset", "0"), ("--partition", "x"))]),
    Verb("dlq", "redrive", good=("lines", "--execute"), without=("topic", "--help"), writes=True, wrong=[
        (("lines", "--max-redrives", "many"), ("--max-redrives", "many"))]),
    Verb("config", "list", needs_data=False, wrong=[(("topics",), ("topics", "topic"))]),
    Verb("log", "dump", needs_data=False, without=("path", "--help"), wrong=[
        (("a", "b"), ("b",)), (("a", "--offsets-decoder", "--no-decoder"), ("--offsets-decoder", "--no-decoder"))]),
    Verb("log", "verify", needs_data=False, without=("path", "--help"), wrong=[(("a", "--nonsense"), ("--nonsense",))]),
    Verb("log", "seal", writes=True, wrong=[(("a", "b"), ("b",))]),
    Verb("log", "recover", writes=True, wrong=[(("a", "b"), ("b",))]),
    Verb("version", needs_data=False, wrong=[(("--nonsense",), ("--nonsense",))]),
]


class ToolCase(Case):
    def prepare(self):
        """A directory with topic lines (3 records), group readers at 2 of them and application words."""
        self.word_count("--application-id", "words", "--text", "-", stdin=b"a b\nb\nc\n")
        self.weir("consume", "lines", "--group", "readers", "--max-messages", "2")

    def tool(self, verb, *arguments, environment=None):
        done = subprocess.run(self.command("weir", *verb.words, *arguments), input=verb.stdin, capture_output=True,
                              timeout=120, check=False, env=environment)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def assert_is_said_well(self, verb, code, errors, parts=()):
        """A person can act on it: no crash, one message, of this program, with these parts."""
        self.assertGreaterEqual(code, 0, f"{verb}: killed by a signal\n{errors}")
        self.assertNotIn("terminate called", errors)
        self.assertNotIn("Assertion", errors)
        self.assertNotEqual(errors.strip(), "", f"{verb}: code {code} and no message")
        for part in parts:
            self.assertIn(part, errors, verb)


class Help(ToolCase):
    def test_every_command_is_in_the_table(self):
        names = set()
        for group in self.subcommands():
            names.update((group, verb) for verb in self.subcommands(group))
            if not self.subcommands(group):
                names.add((group,))
        self.assertEqual(names, {verb.words for verb in VERBS})

    def subcommands(self, *words):
        text = self.weir(*words, "--help").decode()
        lines = text.split("Subcommands:")[1].split("\n\n")[0].splitlines() if "Subcommands:" in text else []
        return [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]

    def test_every_command_has_help_with_an_example(self):
        for verb in VERBS:
            with self.subTest(str(verb)):
                code, output, errors = self.tool(verb, "--help")
                self.assertEqual((code, errors), (0, ""))
                text = output.decode()
                self.assertRegex(text, "Usage: .*weir")
                self.assertRegex(text, f"Examples?:(.|\n)*  .*weir {verb}")

    def test_mistakes_are_usage_errors_that_name_them(self):
        self.prepare()
        for verb in VERBS:
            if verb.without:
                with self.subTest(str(verb)):
                    code, output, errors = self.tool(verb)
                    self.assertEqual((code, output), (USAGE, b""))
                    self.assert_is_said_well(verb, code, errors, verb.without)
            for arguments, parts in verb.wrong:
                with self.subTest(f"{verb} {arguments}"):
                    code, output, errors = self.tool(verb, *arguments)
                    self.assertEqual((code, output), (USAGE, b""), errors)
                    self.assert_is_said_well(verb, code, errors, parts)

    def test_a_command_that_does_not_exist_names_the_nearest(self):
        for arguments, parts in ((("grup",), ("'grup'", "group", "weir --help")),
                                 (("group", "resett", "g"), ("'resett'", "reset", "weir group --help")),
                                 (("topic", "--data", "x", "destroy"), ("'destroy'", "weir topic --help")),
                                 (("group",), ("weir group --help",)), ((), ("weir --help",))):
            with self.subTest(arguments):
                self.assert_fails(USAGE, *parts, arguments=arguments)

    def test_what_does_not_exist_is_not_found_and_what_is_near_is_named(self):
        self.prepare()
        cases = [(("topic", "describe", "line"), "lines"), (("topic", "delete", "line"), "lines"),
                 (("topic", "alter", "line", "--partitions", "2"), "lines"), (("consume", "line"), "lines"),
                 (("topic", "delete-records", "lines", "--partition", "7", "--before", "0"), "0 to 0"),
                 (("group", "describe", "reader"), "readers"), (("app", "describe", "word"), "words"),
                 (("app", "reset", "word"), "words"), (("group", "reset", "g", "--topic", "line", "--to-latest"), "lines"),
                 (("group", "reset", "g", "--topic", "lines", "--partition", "4", "--to-latest"), "0 to 0"),
                 (("state", "get", "words", "count", "a"), "counts"), (("state", "get", "word", "counts", "a"), "words"),
                 (("log", "dump", os.path.join(self.folder, "nothing")), "nothing"),
                 (("log", "verify", os.path.join(self.folder, "nothing")), "nothing"),
                 (("log", "seal", os.path.join(self.folder, "nothing")), "nothing"),
                 (("log", "recover", os.path.join(self.folder, "nothing")), "nothing")]
        for arguments, near in cases:
            with self.subTest(arguments):
                self.assert_fails(NOT_FOUND, near, arguments=arguments)

    def test_json_is_one_object_a_line_everywhere(self):
        self.prepare()
        for verb in VERBS:
            reads_files = verb.words in (("log", "dump"), ("log", "verify"))
            arguments = (os.path.join(self.data, "log", "lines-0"),) if reads_files else verb.good
            if verb.words in (("topic", "delete"), ("app", "reset")):
                continue  # last, below: the others need them
            with self.subTest(str(verb)):
                self.assert_json(verb, arguments)
        for verb in VERBS:
            if verb.words in (("app", "reset"), ("topic", "delete")):
                self.assert_json(verb, verb.good)
                self.prepare()

    def assert_json(self, verb, arguments):
        code, output, errors = self.tool(verb, *arguments, "-o", "json")
        self.assertEqual(code, 0, errors)
        lines = output.splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertIsInstance(json.loads(line), dict)


class Empty(ToolCase):
    def test_a_directory_that_is_not_there_is_named_and_not_made(self):
        for verb in VERBS:
            if not verb.needs_data or verb.words == ("topic", "create"):
                continue
            with self.subTest(str(verb)):
                code, output, errors = self.tool(verb, *verb.good)
                self.assertEqual((code, output), (NOT_FOUND, b""), errors)
                self.assert_is_said_well(verb, code, errors, (self.data, "--data"))
                self.assertFalse(os.path.exists(self.data))

    def test_an_empty_directory_is_none_either(self):
        os.mkdir(self.data)
        for verb in VERBS:
            if verb.needs_data and verb.words != ("topic", "create"):
                with self.subTest(str(verb)):
                    code, _, errors = self.tool(verb, *verb.good)
                    self.assertEqual(code, NOT_FOUND)
                    self.assert_is_said_well(verb, code, errors, (self.data, "--data"))
        self.assertEqual(os.listdir(self.data), [])
        self.weir("topic", "create", "lines")

    def test_a_directory_without_content_has_nothing_to_list(self):
        self.weir("topic", "create", "lines")
        self.assertEqual(self.weir("group", "list"), b"")
        self.assertEqual(self.weir("app", "list"), b"")
        self.assert_fails(NOT_FOUND, "readers", "no committed offsets", arguments=("group", "describe", "readers"))
        self.assert_fails(NOT_FOUND, "words", "there is none", arguments=("app", "describe", "words"))


class Locked(ToolCase):
    """Beside a running program."""

    def setUp(self):
        super().setUp()
        self.prepare()
        self.process = subprocess.Popen(
            self.command("word_count", "--application-id", "words", "--text", "-", "--quiet"), stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.addCleanup(self.process.stdin.close)
        deadline = time.monotonic() + 60
        while b'"running":true' not in subprocess.run(self.command("weir", "app", "list", "-o", "json"),
                                                      capture_output=True, check=False).stdout:
            self.assertLess(time.monotonic(), deadline, "it did not start")

    def test_readers_read_and_writers_are_told_who_holds_it(self):
        for verb in VERBS:
            if not verb.needs_data:
                continue
            with self.subTest(str(verb)):
                code, output, errors = self.tool(verb, *verb.good)
                if verb.writes:
                    self.assertEqual((code, output), (1, b""), errors)
                    self.assert_is_said_well(verb, code, errors, (self.data, f"pid {self.process.pid} (word_count)"))
                else:
                    self.assertEqual(code, 0, errors)
                    self.assertNotEqual(output, b"")

    def test_a_running_application_is_shown_as_such_and_not_reset(self):
        described = json.loads(self.weir("app", "describe", "words", "-o", "json"))
        self.assertTrue(described["running"])
        self.assertIn(str(self.process.pid), described["holder"])
        self.assert_fails(1, "words is running", "stop it first", str(self.process.pid),
                          arguments=("app", "reset", "words"))
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)
        self.assertFalse(json.loads(self.weir("app", "describe", "words", "-o", "json"))["running"])
        self.weir("app", "reset", "words", "--execute")


class Damaged(ToolCase):
    def every_file(self):
        for folder, _, names in os.walk(self.data):
            for name in names:
                yield os.path.join(folder, name)

    def test_no_damage_makes_a_command_crash(self):
        """One file at a time, with random damage: each command works, or says what is wrong."""
        seed = random.randrange(1 << 32)
        generator = random.Random(seed)
        self.prepare()
        whole = os.path.join(self.folder, "whole")
        shutil.copytree(self.data, whole)
        files = [path for path in self.every_file() if "/__consumer_offsets-" not in path or self.size(path) > 0]
        verbs = [verb for verb in VERBS if verb.needs_data]
        for path in files:
            shutil.rmtree(self.data)
            shutil.copytree(whole, self.data)
            self.damage(path, generator)
            for verb in generator.sample(verbs, 3):
                with self.subTest(f"seed {seed}: {verb} with {path} damaged"):
                    code, _, errors = self.tool(verb, *verb.good)
                    self.assertIn(code, (0, 1, 3, 6), errors)
                    if code != 0:
                        self.assert_is_said_well(verb, code, errors, ("weir: ",))

    @staticmethod
    def size(path):
        return os.path.getsize(path)

    @staticmethod
    def damage(path, generator):
        size = os.path.getsize(path)
        with open(path, "r+b") as file:
            kind = generator.randrange(3)
            if kind == 0 or size == 0:
                file.write(generator.randbytes(min(size, 4096) or 64))
            elif kind == 1:
                file.truncate(size // 2)
            else:
                file.seek(generator.randrange(min(size, 1000)))
                file.write(b"\xff")

    def test_a_directory_of_which_the_heart_is_gone_names_the_file(self):
        self.prepare()
        path = os.path.join(self.data, "log", "meta.properties")
        with open(path, "rb") as file:
            text = file.read()
        for damaged in (b"nonsense", text.replace(b"directory.id=", b"directory.id=\xff")):
            with open(path, "wb") as file:
                file.write(damaged)
            for arguments in (("topic", "list"), ("topic", "create", "x")):
                self.assert_fails(6, "CORRUPT_MESSAGE", path, "restore it from a copy", arguments=arguments)

    def test_a_plan_that_cannot_be_read_names_its_file_and_hides_no_other_application(self):
        self.prepare()
        self.word_count("--application-id", "other")
        path = os.path.join(self.data, "state", "words", "plan.binpb")
        with open(path, "wb") as file:
            file.write(b"\xff\xff\xff\xff")
        for arguments in (("app", "describe", "words"), ("app", "reset", "words", "--execute"),
                          ("group", "reset", "words", "--topic", "lines", "--to-earliest")):
            self.assert_fails(6, "CORRUPT_MESSAGE", path, arguments=arguments)
        listed = self.weir("app", "list", code=6).decode()
        self.assertRegex(listed, r"other +stopped +2 +lines +counts")
        self.assertRegex(listed, r"words +damaged")


class Groups(ToolCase):
    def describe(self, group="readers"):
        rows = [json.loads(line) for line in self.weir("group", "describe", group, "-o", "json").splitlines()]
        return [(row["topic"], row["partition"], row["currentOffset"], row["logEndOffset"], row["lag"]) for row in rows]

    def setUp(self):
        super().setUp()
        self.weir("topic", "create", "t", "--partitions", "2")
        self.weir("produce", "t", "--partition", "0", stdin=b"1\n2\n3\n4\n")
        self.weir("produce", "t", "--partition", "1", stdin=b"5\n")

    def test_a_group_goes_on_where_it_stopped(self):
        self.assertEqual(self.weir("consume", "t", "--partition", "0", "--group", "readers", "--max-messages", "3"),
                         b"1\n2\n3\n")
        self.assertEqual(self.describe(), [("t", 0, 3, 4, 1)])
        self.assertEqual(sorted(self.weir("consume", "t", "--group", "readers").split()), [b"4", b"5"])
        self.assertEqual(self.weir("consume", "t", "--group", "readers"), b"")
        self.assertEqual(self.describe(), [("t", 0, 4, 4, 0), ("t", 1, 1, 1, 0)])
        self.assertEqual(self.weir("consume", "t", "--partition", "0", "--offset", "3", "--group", "readers"), b"4\n")
        self.assertEqual(self.weir("group", "list"), b"readers\n")

    def test_what_a_closed_pipe_did_not_take_is_not_committed(self):
        self.weir("produce", "t", "--partition", "1", stdin=b"line\n" * 200_000)
        done = subprocess.run(["bash", "-c", '"$@" | head -n 1', "-",
                               *self.command("weir", "consume", "t", "--partition", "1", "--group", "readers")],
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(done.stdout, b"5\n")
        listed = self.weir("group", "list")
        committed = self.describe()[0][2] if listed else 0
        self.assertLess(committed, 200_001)

    def test_described_as_a_table(self):
        self.weir("consume", "t", "--group", "readers")
        lines = self.weir("group", "describe", "readers").decode().splitlines()
        self.assertEqual(lines[0].split(), ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG",
                                            "METADATA"])
        self.assertEqual([line.split() for line in lines[1:]], [["readers", "t", "0", "4", "4", "0", "-"],
                                                                ["readers", "t", "1", "1", "1", "0", "-"]])

    def test_members_are_described_and_a_group_is_deleted(self):
        self.weir("consume", "t", "--group", "readers")
        lines = self.weir("group", "describe", "readers", "--members").decode().splitlines()
        self.assertEqual([line.split() for line in lines],
                         [["GROUP", "STATE", "ASSIGNOR", "GENERATION", "MEMBERS"], ["readers", "Empty", "-", "0", "0"]])
        self.assertEqual(json.loads(self.weir("group", "list", "-o", "json")),
                         {"group": "readers", "state": "Empty", "protocolType": "", "assignor": "", "generation": 0,
                          "members": 0})
        self.assertEqual(self.weir("group", "describe", "readers", "--members", "-o", "json"), b"")
        self.weir("group", "delete", "readers")
        self.assertEqual(self.weir("group", "list"), b"")
        self.assert_fails(NOT_FOUND, "readers", arguments=("group", "delete", "readers"))

    def test_a_reset_shows_first_and_changes_only_with_execute(self):
        self.weir("consume", "t", "--group", "readers")
        reset = ("group", "reset", "readers", "--topic", "t", "--to-earliest")
        before = self.describe()
        shown = self.weir(*reset).decode()
        self.assertIn("--execute", self.stderr)
        self.assertEqual([line.split() for line in shown.splitlines()],
                         [["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "NEW-OFFSET"],
                          ["readers", "t", "0", "4", "0"], ["readers", "t", "1", "1", "0"]])
        self.assertEqual(self.describe(), before)
        self.assertEqual(self.weir(*reset, "--execute").decode(), shown)
        self.assertNotIn("--execute", self.stderr)
        self.assertEqual(self.describe(), [("t", 0, 0, 4, 4), ("t", 1, 0, 1, 1)])
        self.assertEqual(len(self.weir("consume", "t", "--group", "readers").split()), 5)

    def test_targets(self):
        def reset(*arguments):
            self.weir("group", "reset", "new", "--topic", "t", *arguments, "--execute")
            return [(partition, offset) for _, partition, offset, _, _ in self.describe("new")]

        self.assertEqual(reset("--to-latest"), [(0, 4), (1, 1)])
        self.assertEqual(reset("--partition", "0", "--to-offset", "2"), [(0, 2), (1, 1)])
        self.assert_fails(1, "OFFSET_OUT_OF_RANGE", "offset 3 is outside t-1, which holds 0 to 1",
                          arguments=("group", "reset", "new", "--topic", "t", "--to-offset", "3", "--execute"))
        self.assertEqual(self.describe("new")[0][2], 2)
        self.assertEqual(reset("--to-time", "1999-01-01"), [(0, 0), (1, 0)])
        self.assertEqual(reset("--to-time", "2999-01-01T00:00:00Z"), [(0, 4), (1, 1)])
        records = [json.loads(line) for line in self.weir("consume", "t", "-o", "json").splitlines()]
        fifth = next(record for record in records if record["value"] == "5")
        first = next(record for record in records if record["value"] == "1")
        self.assertEqual(reset("--to-time", str(first["timestamp"])), [(0, 0), (1, 0)])
        self.assertGreater(fifth["timestamp"], first["timestamp"])
        self.assertEqual(reset("--to-time", str(fifth["timestamp"])), [(0, 4), (1, 0)])

    # cases.md N17
    def test_a_committed_offset_below_the_start_goes_to_the_start_with_a_line(self):
        self.weir("consume", "t", "--partition", "0", "--group", "readers", "--max-messages", "1")
        self.weir("topic", "delete-records", "t", "--partition", "0", "--before", "3")
        self.assertEqual(self.weir("consume", "t", "--partition", "0", "--group", "readers"), b"4\n")
        self.assertIn("t-0", self.stderr)
        self.assert_fails(1, "3 to 4", arguments=("consume", "t", "--partition", "0", "--offset", "1"))

    def test_an_applications_offsets_are_not_moved_from_under_it(self):
        self.prepare()
        for arguments in (("group", "reset", "words", "--topic", "lines", "--to-earliest", "--execute"),
                          ("consume", "lines", "--group", "words")):
            self.assert_fails(USAGE, "application words", "counts", "weir app reset words", arguments=arguments)
        self.assertEqual(self.describe("words")[0][2], 3)


class Applications(ToolCase):
    def test_they_are_listed_and_described(self):
        self.prepare()
        rows = [line.split() for line in self.weir("app", "list").decode().splitlines()]
        self.assertEqual(rows, [["APPLICATION", "STATE", "TASKS", "INPUTS", "STORES"],
                                ["words", "stopped", "2", "lines", "counts"]])
        described = json.loads(self.weir("app", "describe", "words", "-o", "json"))
        self.assertEqual([(s["tasks"], s["sourceTopics"], s["sinkTopics"], s["stores"])
                          for s in described["subTopologies"]],
                         [(1, ["lines"], ["words-counts-repartition"], []),
                          (1, ["words-counts-repartition"], ["word-counts"], ["counts"])])
        self.assertEqual(described["stores"], [{"name": "counts", "keySerde": "string", "valueSerde": "long",
                                                "changelogTopic": "words-counts-changelog"}])
        self.assertEqual({t["topic"]: t["kind"] for t in described["topics"]},
                         {"lines": "input", "word-counts": "output", "words-counts-changelog": "changelog",
                          "words-counts-repartition": "repartition"})
        self.assertEqual([(o["topic"], o["currentOffset"], o["lag"]) for o in described["committedOffsets"]],
                         [("lines", 3, 0), ("words-counts-repartition", 4, 0)])
        text = self.weir("app", "describe", "words").decode()
        for part in ("Running: no", "Sub-topology: 1", "words-counts-changelog", "repartition"):
            self.assertIn(part, text)

    def test_a_reset_one_counts_from_the_beginning(self):
        counted = self.word_count("--application-id", "words", "--text", GPL)
        self.word_count("--application-id", "other", "--output", "other-out")
        shown = self.weir("app", "reset", "words").decode()
        self.assertIn("--execute", self.stderr)
        self.assertEqual(shown.splitlines()[:2], ["delete topic words-counts-changelog",
                                                  "delete topic words-counts-repartition"])
        self.assertEqual(shown.splitlines()[3], f"remove state {self.data}/state/words")
        self.assertIn("words-counts-changelog", self.weir("topic", "list").decode())
        self.assertEqual(self.weir("app", "reset", "words", "--execute").decode(), shown)
        self.assertNotIn(b"words-counts", self.weir("topic", "list"))
        self.assertFalse(os.path.exists(os.path.join(self.data, "state", "words")))
        self.weir("topic", "delete", "word-counts")
        self.assertEqual(self.word_count("--application-id", "words"), counted)
        self.assertEqual(self.word_count("--application-id", "other", "--output", "other-out"), counted)

    def test_a_reset_takes_an_input_that_was_deleted_and_offsets_of_former_topics(self):
        self.prepare()
        self.word_count("--application-id", "words", "--input", "more", "--text", "-", stdin=b"d\n")
        actions = [json.loads(line) for line in self.weir("app", "reset", "words", "-o", "json").splitlines()]
        self.assertEqual([a["topic"] for a in actions if a["action"] == "setOffset"], ["more"])
        self.assertEqual([a["topic"] for a in actions if a["action"] == "deleteOffset"], ["lines"])
        self.assertEqual({a["executed"] for a in actions}, {False})
        self.weir("topic", "delete", "more")
        self.weir("app", "reset", "words", "--execute")
        self.assertEqual(self.weir("group", "list"), b"readers\n")

    def test_names_that_begin_alike_are_kept_apart(self):
        self.word_count("--application-id", "a", "--text", "-", stdin=b"x\n")
        self.word_count("--application-id", "a-b", "--output", "b-out")
        self.weir("app", "reset", "a", "--execute")
        self.assertEqual(json.loads(self.weir("state", "get", "a-b", "counts", "x", "-o", "json"))["value"], 1)
        self.assertEqual(table(self.word_count("--application-id", "a-b", "--output", "b-out")), [(1, b"x")])

    def test_a_reset_that_was_cut_short_is_finished_by_another(self):
        self.prepare()
        self.weir("topic", "delete", "words-counts-changelog")
        self.weir("app", "reset", "words", "--execute")
        self.weir("topic", "delete", "word-counts")
        self.assertEqual(table(self.word_count("--application-id", "words")), [(2, b"b"), (1, b"a"), (1, b"c")])


class Changes(ToolCase):
    def test_a_topic_grows_and_changes_its_settings(self):
        self.weir("topic", "create", "t", "--config", "segment.ms=1000")
        self.assertEqual(self.weir("topic", "alter", "t", "--partitions", "3", "--config", "retention.ms=5",
                                   "--delete-config", "segment.ms"),
                         b"Altered topic t: PartitionCount: 3\tConfigs: retention.ms=5\n")
        described = json.loads(self.weir("topic", "describe", "t", "-o", "json"))
        self.assertEqual((len(described["partitions"]), described["config"]), (3, {"retention.ms": "5"}))
        self.weir("topic", "alter", "t", "--config", "weir.ordered=true")
        self.assert_fails(USAGE, "weir.ordered", arguments=("topic", "alter", "t", "--partitions", "4"))
        self.weir("topic", "alter", "t", "--partitions", "4", "--force")

    def test_records_are_deleted_from_the_front(self):
        self.weir("topic", "create", "t")
        self.weir("produce", "t", stdin=b"1\n2\n3\n")
        self.assertEqual(self.weir("topic", "delete-records", "t", "--partition", "0", "--before", "2"),
                         b"Deleted records of t-0 before offset 2.\n")
        self.assertEqual(self.weir("consume", "t"), b"3\n")
        self.assert_fails(1, "OFFSET_OUT_OF_RANGE", "t-0", arguments=("topic", "delete-records", "t", "--partition",
                                                                     "0", "--before", "9"))
        deleted = self.weir("topic", "delete-records", "t", "--partition", "0", "--before", "-1", "-o", "json")
        self.assertEqual(json.loads(deleted), {"topic": "t", "partition": 0, "logStartOffset": 3})

    def test_produced_partitions_keys_nulls_and_headers(self):
        self.weir("topic", "create", "t", "--partitions", "2")
        self.weir("produce", "t", "--parse-partition", "--parse-key", "--key-separator", ":", "--null-marker", "NULL",
                  "--header", "source=test", "--header", "empty=", "--header", "none=NULL", "--acks", "1",
                  stdin=b"1:k:v\n0:NULL:a:b\n1:k:NULL\n7:k:v\nx:k:v\n1:nokey\n", code=1)
        for part in ("line 4", "partitions 0 to 1", "line 5", "partition number", "line 6", "key separator"):
            self.assertIn(part, self.stderr)
        records = [json.loads(line) for line in self.weir("consume", "t", "-o", "json").splitlines()]
        self.assertEqual(sorted((r["partition"], r["offset"], r["key"], r["value"]) for r in records),
                         [(0, 0, None, "a:b"), (1, 0, "k", "v"), (1, 1, "k", None)])
        for record in records:
            self.assertEqual(record["headers"], [["source", "test"], ["empty", ""], ["none", None]])

    def test_produced_batches_are_compressed(self):
        self.weir("topic", "create", "t")
        for codec in ("gzip", "snappy", "lz4", "zstd", "none"):
            self.weir("produce", "t", "--compression", codec, stdin=b"the same line\n" * 100)
        self.assertEqual(self.weir("consume", "t"), b"the same line\n" * 500)
        dumped = self.weir("log", "dump", os.path.join(self.data, "log", "t-0")).decode()
        for codec in ("gzip", "snappy", "lz4", "zstd", "none"):
            self.assertIn(f"compresscodec: {codec}", dumped)

    def test_consuming_starts_at_a_time_or_behind_the_last_record(self):
        self.weir("topic", "create", "t")
        self.weir("produce", "t", stdin=b"1\n")
        self.weir("produce", "t", stdin=b"2\n")
        second = json.loads(self.weir("consume", "t", "-o", "json").splitlines()[1])["timestamp"]
        self.assertEqual(self.weir("consume", "t", "--time", str(second)), b"2\n")
        iso = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second // 1000)) + f".{second % 1000:03}Z"
        self.assertEqual(self.weir("consume", "t", "--time", iso), b"2\n")
        self.assertEqual(self.weir("consume", "t", "--time", "1999-12-31"), b"1\n2\n")
        self.assertEqual(self.weir("consume", "t", "--time", "2999-12-31"), b"")
        self.assertEqual(self.weir("consume", "t", "--latest"), b"")

    def test_settings_are_listed_with_default_range_and_meaning(self):
        rows = [json.loads(line) for line in self.weir("config", "list", "-o", "json").splitlines()]
        self.assertEqual({row["kind"] for row in rows}, {"log", "topic", "producer", "consumer", "app"})
        self.assertTrue(all(row["doc"] for row in rows))
        known = {(row["kind"], row["name"]): (row["default"], row["range"]) for row in rows}
        self.assertEqual(len(known), len(rows))
        # Kafka's own defaults.
        self.assertEqual(known["topic", "retention.ms"], ("604800000", "-1 or more"))
        self.assertEqual(known["topic", "message.timestamp.type"], ("CreateTime", "CreateTime,LogAppendTime"))
        self.assertEqual(known["producer", "batch.size"][0], "16384")
        self.assertEqual(known["producer", "acks"][0], "all")
        self.assertEqual(known["consumer", "auto.offset.reset"][0], "latest")
        self.assertEqual(known["app", "num.stream.threads"], ("1", "1 to 1024"))
        text = self.weir("config", "list", "producer").decode().splitlines()
        self.assertEqual(text[0].split(), ["KIND", "NAME", "DEFAULT", "RANGE", "MEANING"])
        self.assertEqual({line.split()[0] for line in text[1:]}, {"producer"})


if __name__ == "__main__":
    unittest.main()
