"""streams_cases finds what is wrong: each test changes one thing in a case that is right."""
import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["WEIR_STREAMS_CASES"]
RECORDED = pathlib.Path(__file__).parent.parent / "data" / "streams"
HEAD = {"format": "weir-streams-cases/1", "group": "test", "kafka": "4.3.1", "about": "worked by hand"}


def recorded_topology(file, op, **params):
    """The topology line of a recording, with Kafka's own describe()."""
    for line in (RECORDED / file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("op") == op and row.get("params") == params and row["config"] == {} and "topology" in row:
            return dict(row, topology="T1")
    raise AssertionError(f"no topology {op} {params} in {file}")


COUNT = recorded_topology("aggregates.jsonl", "agg", f="count", group="key", store="rocksdb")

# Counts by key, worked by hand: two records of a, one without a key (dropped), one of b.
EVENTS = [
    {"i": ["in", "a", "x", 5, [["h", "1"]]], "o": [["out", "a", 1, 5, [["h", "1"]]]],
     "x": [["app-agg-store-changelog", "61", "0000000000000001", 5]]},
    {"i": ["in", None, "x", 6], "o": [], "d": 1},
    {"i": ["in", "a", "y", 3], "o": [["out", "a", 2, 5]], "x": [["app-agg-store-changelog", "61", "0000000000000002", 5]]},
    {"adv": 10, "o": []},
    {"i": ["in", "b", "z", 7], "o": [["out", "b", 1, 7]], "x": [["app-agg-store-changelog", "62", "0000000000000001", 7]]},
]
END = {"end": "counts", "dropped": 1, "topics": ["app-agg-store-changelog", "out"],
       "stores": {"agg-store": {"kind": "timestamped-kv", "rows": [["b", 1, 7], ["a", 2, 5]]}}}
HEADLINE = {"case": "counts", "rules": [], "t": "T1"}


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.topology = copy.deepcopy(COUNT)
        self.headline = dict(HEADLINE)
        self.events = copy.deepcopy(EVENTS)
        self.end = copy.deepcopy(END)

    def lines(self):
        return [HEAD, self.topology, self.headline, *self.events, self.end]

    def write(self, lines, name="some.jsonl"):
        path = self.folder / name
        text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("".join(line + "\n" for line in text), encoding="utf-8")
        return path

    def run_program(self, *arguments, code):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=60, check=False, text=True)
        self.stdout, self.stderr = done.stdout, done.stderr
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def assert_totals(self, totals, *parts, code=0, arguments=()):
        """The case as it stands gives these totals in the last line, and all `parts` before it."""
        stdout = self.run_program(self.write(self.lines()), *arguments, code=code)
        self.assertEqual(stdout.splitlines()[-1], totals, stdout)
        for part in parts:
            self.assertIn(part, stdout)

    def assert_case_fails(self, *parts):
        self.assert_totals("0 passed, 1 failed, 0 skipped", "FAILED counts", *parts, code=1)

    def assert_skipped(self, reason):
        self.assert_totals("0 passed, 0 failed, 1 skipped", f"skipped counts: {reason}", arguments=["-v"])


class Cases(Base):
    def test_what_is_right_passes(self):
        self.assert_totals("1 passed, 0 failed, 0 skipped")

    def test_a_wrong_output_is_shown_beside_what_came(self):
        self.events[2]["o"][0][2] = 3
        self.assert_case_fails('event 3: {"i":["in","a","y",3]}', 'o expected: [["out","a",3,5]]',
                               'o got:      [["out","a",2,5]]')

    def test_each_part_of_an_output_counts(self):
        for part, other in enumerate(["elsewhere", "q", 9, 9, [["h", "2"]]]):
            with self.subTest(part):
                self.setUp()
                self.events[0]["o"][0][part] = other
                self.assert_case_fails("event 1:", "o expected:")

    def test_an_output_that_does_not_come(self):
        self.events[1]["o"] = [["out", "a", 2, 6]]
        self.assert_case_fails("event 2:", 'o expected: [["out","a",2,6]]', "o got:      []")

    def test_an_output_too_many(self):
        self.events[4]["o"] = []
        self.assert_case_fails("event 5:", "o expected: []", 'o got:      [["out","b",1,7]]')

    def test_headers_too_many(self):
        del self.events[0]["o"][0][4]
        self.assert_case_fails("event 1:")

    def test_wrong_internal_records(self):
        self.events[0]["x"][0][2] = "0000000000000009"
        self.assert_case_fails("event 1:", "x expected:", "0000000000000009")
        self.setUp()
        del self.events[4]["x"]
        self.assert_case_fails("event 5:", "x expected: []")

    def test_internal_records_count_only_where_they_were_recorded(self):
        for event in self.events:
            event.pop("x", None)
        del self.end["topics"]
        self.assert_totals("1 passed, 0 failed, 0 skipped")

    def test_a_wrong_number_of_drops(self):
        del self.events[1]["d"]
        self.assert_case_fails("event 2:", "d expected: 0", "d got:      1")
        self.setUp()
        self.end["dropped"] = 2
        self.assert_case_fails("end", "dropped expected: 2")

    def test_a_wrong_row_of_a_store(self):
        for row in (["a", 3, 5], ["a", 2, 6], ["q", 2, 5]):
            with self.subTest(row):
                self.setUp()
                self.end["stores"]["agg-store"]["rows"][1] = row
                self.assert_case_fails("end", "store agg-store expected:", json.dumps(row, separators=(",", ":")))

    def test_a_row_too_many_or_missing(self):
        self.end["stores"]["agg-store"]["rows"].append(["c", 1, 1])
        self.assert_case_fails("store agg-store expected:")
        self.setUp()
        self.end["stores"]["agg-store"]["rows"].pop()
        self.assert_case_fails("store agg-store expected:")

    def test_a_store_too_many_or_missing(self):
        self.end["stores"]["other"] = {"kind": "kv", "rows": []}
        self.assert_case_fails("store other expected: a store", "no such store")
        self.setUp()
        self.end["stores"] = {}
        self.assert_case_fails("store agg-store expected: no such store")

    def test_wrong_topics(self):
        self.end["topics"].append("unseen")
        self.assert_case_fails("topics expected:", "unseen")

    def test_an_error_that_does_not_come(self):
        self.events = [dict(self.events[0], throws=[["StreamsException", "text"]])]
        self.assert_case_fails("event 1:", "throws expected: an error", "throws got:      none")

    def test_an_error_that_nobody_expects(self):
        self.events[0] = {"i": ["in", "a", "x", -1], "o": []}
        self.assert_case_fails("event 1:", "throws expected: none", "INVALID_TIMESTAMP")

    def test_an_expected_error_passes(self):
        self.events = [{"i": ["in", "a", "x", -1], "o": [], "throws": [["StreamsException", "text"]]}]
        self.end = {"end": "counts", "dropped": 0}
        self.assert_totals("1 passed, 0 failed, 0 skipped")

    def test_another_describe_text(self):
        self.topology["describe"] = self.topology["describe"].replace("AGGREGATE", "REDUCE", 1)
        self.assert_case_fails("describe line 4 expected:       --> KSTREAM-REDUCE-0000000001", "KSTREAM-AGGREGATE")

    def test_a_topology_that_should_be_refused(self):
        self.topology, self.events = HEADLINE, []
        refused = {"case": "counts", "rules": [], "op": "agg", "params": COUNT["params"], "config": {},
                   "build_throws": [["TopologyException", "no"]]}
        stdout = self.run_program(self.write([HEAD, refused]), code=1)
        self.assertIn("build expected: a refusal", stdout)

    def test_an_input_topic_that_the_topology_does_not_read(self):
        self.topology["in"]["in9"] = ["string", "string"]
        self.assert_case_fails("in expected: in9")


class Skipped(Base):
    def test_an_unknown_op(self):
        self.topology["op"] = "agg9"
        self.assert_skipped("unknown op 'agg9'")

    def test_an_op_that_is_not_there_yet(self):
        self.topology["op"] = "cogroup"
        self.assert_skipped("not supported yet: cogroup")

    def test_an_unknown_parameter(self):
        self.topology["params"]["bounces"] = 1
        self.assert_skipped("unknown parameter 'bounces' of op 'agg'")

    def test_an_unknown_setting(self):
        self.topology["config"]["some.setting"] = "1"
        self.assert_skipped("unknown setting 'some.setting'")

    def test_a_value_of_a_setting_that_is_not_followed(self):
        self.topology["config"]["topology.optimization"] = "everything"
        self.assert_skipped("not supported yet: topology.optimization=everything")

    def test_an_unknown_serde(self):
        self.topology["out"]["out"][1] = "decimal"
        self.assert_skipped("unknown serde 'decimal'")

    def test_an_unknown_kind_of_store(self):
        self.end["stores"]["agg-store"]["kind"] = "tree"
        self.assert_skipped("not supported yet: store kind tree")


class Filter(Base):
    def test_a_part_of_the_name_or_a_pattern(self):
        for text in ("counts", "oun", "c*s", "[c]?unts"):
            self.assert_totals("1 passed, 0 failed, 0 skipped", arguments=["--filter", text])

    def test_nothing_matches(self):
        for text in ("x", "ount*"):
            self.run_program(self.write(self.lines()), "--filter", text, code=2)
            self.assertIn(f"no case matches '{text}'", self.stderr)


class Differences(Base):
    def run_with(self, difference, code):
        self.write(self.lines())
        self.write([difference], "differences.jsonl")
        return self.run_program(self.folder, "-v", code=code)

    def difference(self):
        """The recording says 3 where we deliberately say 2."""
        ours = {"case": "counts", "reason": "1: we count otherwise", "events": copy.deepcopy(self.events),
                "end": copy.deepcopy(self.end)}
        self.events[2]["o"][0][2] = 3
        return ours

    def test_our_values_count(self):
        stdout = self.run_with(self.difference(), 0)
        self.assertIn("different counts: 1: we count otherwise", stdout)
        self.assertEqual(stdout.splitlines()[-1], "0 passed, 0 failed, 0 skipped, 1 different")

    def test_our_values_must_be_met(self):
        difference = self.difference()
        difference["events"][4]["o"][0][2] = 7
        self.assertIn("event 5:", self.run_with(difference, 1))

    def test_it_counts_for_a_single_file_too(self):
        self.write([self.difference()], "differences.jsonl")
        self.assert_totals("0 passed, 0 failed, 0 skipped, 1 different")

    def test_inputs_are_the_recorded_ones(self):
        difference = self.difference()
        difference["events"][1]["i"][3] = 99
        self.run_with(difference, 2)
        self.assertIn("the recording's event 2 has another input", self.stderr)
        self.setUp()
        difference = self.difference()
        difference["events"].pop()
        self.run_with(difference, 2)
        self.assertIn("event 5 is missing", self.stderr)

    def test_a_difference_that_is_none(self):
        self.run_with({"case": "counts", "reason": "1: none", "events": self.events, "end": self.end}, 2)
        self.assertIn("nothing differs from the recording", self.stderr)

    def test_a_case_that_nobody_has(self):
        self.run_with(dict(self.difference(), case="other"), 2)
        self.assertIn("differences.jsonl:1: no file has a case 'other'", self.stderr)

    def test_a_reason_is_needed(self):
        self.run_with(dict(self.difference(), reason=""), 2)
        self.assertIn("a difference needs a reason", self.stderr)


class Malformed(Base):
    def assert_refused(self, lines, place, text):
        path = self.write(lines)
        self.run_program(path, code=2)
        self.assertIn(f"streams_cases: {path}:{place}: ", self.stderr)
        self.assertIn(text, self.stderr)

    def test_no_json(self):
        self.assert_refused([HEAD, '{"topology":'], 2, "parse error")

    def test_no_object(self):
        self.assert_refused([HEAD, "[1]"], 2, "the line is no JSON object")

    def test_another_format(self):
        self.assert_refused([dict(HEAD, format="x/2")], 1, "the first line gives no format")

    def test_a_field_that_nobody_knows(self):
        self.events[1]["extra"] = 1
        self.assert_refused(self.lines(), 5, "unknown field 'extra'")

    def test_a_field_that_is_missing(self):
        del self.events[1]["o"]
        self.assert_refused(self.lines(), 5, "key 'o' not found")

    def test_a_record_that_is_none(self):
        self.events[0]["o"] = [["out", "a", 1]]
        self.assert_refused(self.lines(), 4, "is no record")

    def test_a_topology_that_was_not_given(self):
        self.headline["t"] = "T9"
        self.assert_refused(self.lines(), 3, "topology 'T9' stands in no line before")

    def test_an_event_outside_of_a_case(self):
        self.assert_refused([HEAD, self.topology, self.events[0]], 3, "an event stands outside of a case")

    def test_events_behind_an_error(self):
        self.events[0]["throws"] = []
        self.assert_refused(self.lines(), 5, "a case ends with the event that throws")

    def test_no_end(self):
        self.assert_refused([HEAD, self.topology, self.headline], 3, "case 'counts' has no end line")

    def test_the_end_of_another_case(self):
        self.end["end"] = "other"
        self.assert_refused(self.lines(), 9, "stands in case 'counts'")

    def test_a_name_twice(self):
        self.assert_refused(self.lines() + [self.headline], 10, "case 'counts' is there twice")

    def test_a_line_of_no_kind(self):
        self.assert_refused([HEAD, {"what": 1}], 2, "the line is of no known kind")

    def test_a_file_that_is_not_there(self):
        self.run_program(self.folder / "none.jsonl", code=2)
        self.assertIn("none.jsonl", self.stderr)


class Bytes(Base):
    def run_rows(self, *rows, code):
        return self.run_program(self.write([HEAD, *rows]), code=code).splitlines()

    def test_bytes_of_values(self):
        lines = self.run_rows({"bytes": "serde short", "input": -1, "hex": "ffff"},
                              {"bytes": "serde boolean", "input": True, "hex": "01"},
                              {"bytes": "serde string", "input": None, "hex": None}, code=0)
        self.assertEqual(lines[-1], "3 passed, 0 failed, 0 skipped")

    def test_wrong_bytes(self):
        lines = self.run_rows({"bytes": "serde short", "input": -1, "hex": "fffe"},
                              {"bytes": "serde short", "input": 40000, "hex": "9c40"}, code=1)
        self.assertEqual(lines[-1], "0 passed, 2 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
