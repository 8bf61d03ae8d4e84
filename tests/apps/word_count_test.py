"""word_count as a user runs it: counts equal the shell's, restarts count nothing twice."""
import json
import os
import random
import signal
import subprocess
import time
import unittest

from support import BIN, DATA, FULL, GPL, Case, expected_table, oracle, table


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Counts(Case):
    def count(self, text, *arguments):
        return table(self.word_count("--text", "-", *arguments, stdin=text))

    def test_the_licence_has_the_known_words(self):
        rows = table(self.word_count("--text", GPL))
        self.assertEqual(rows[:5], [(345, b"the"), (221, b"of"), (192, b"to"), (184, b"a"), (151, b"or")])
        self.assertEqual(sum(count for count, _ in rows), 5700)
        self.assertEqual(len(rows), 1026)

    def test_any_language_counts_as_the_shell_counts_it(self):
        for name in ("russian.txt", "turkish.txt"):
            with self.subTest(name):
                self.setUp()
                text = read(os.path.join(DATA, "texts", name))
                self.assertEqual(self.count(text), expected_table(text))

    def test_random_bytes_count_as_the_shell_counts_them(self):
        seed = random.randrange(1 << 32)
        generator = random.Random(seed)
        text = bytes(generator.choices(range(256), k=200_000))
        self.assertEqual(self.count(text), expected_table(text), f"seed {seed}")

    def test_partitions_and_threads_change_no_count(self):
        text = read(GPL)
        self.assertEqual(self.count(text, "--partitions", "4", "--threads", "2"), expected_table(text))

    # cases.md N01
    def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_a_word(self):
        self.assertEqual(self.count(b"\xef\xbb\xbfthe cat\r\nthe dog\r\n"), [(2, b"the"), (1, b"cat"), (1, b"dog")])
        self.setUp()
        self.assertEqual(self.count(b"the cat\nthe dog\n"), [(2, b"the"), (1, b"cat"), (1, b"dog")])

    # cases.md N03; 100 MB with --full
    def test_a_line_without_an_end_is_counted_in_bounded_memory(self):
        size = 100_000_000 if FULL else 4_000_000
        self.assertEqual(self.count(b"\0" * size), [])
        self.setUp()
        text = b"word " * (size // 5) + b"\nend\n"
        self.assertEqual(self.count(text), [(size // 5, b"word"), (1, b"end")])

    def test_a_word_that_is_too_long_is_refused_by_name(self):
        self.run_program("word_count", "--until-end", "--text", "-", stdin=b"a b\n" + b"x" * 600_000, code=1)
        self.assertIn("longest word", self.stderr)

    def test_an_empty_text_gives_an_empty_table(self):
        self.assertEqual(self.count(b""), [])

    def test_top_and_json(self):
        output = self.word_count("--text", GPL, "--top", "2", "-o", "json")
        rows = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(rows, [{"word": "the", "count": 345}, {"word": "of", "count": 221}])


class Restarts(Case):
    def top(self, *arguments):
        return table(self.word_count("--top", "1", *arguments))[0]

    def test_the_same_id_counts_nothing_twice(self):
        self.assertEqual(self.top("--text", GPL), (345, b"the"))
        self.assertEqual(self.top(), (345, b"the"))
        self.assertEqual(self.top("--text", GPL), (690, b"the"))
        self.assertEqual(self.top(), (690, b"the"))

    def test_a_new_id_replays_the_topic(self):
        self.top("--text", GPL)
        self.assertEqual(self.top("--application-id", "second"), (345, b"the"))
        self.assertEqual(self.weir("state", "get", "second", "counts", "the"), b"345\n")

    def test_a_deleted_topic_leaves_the_state_and_is_read_from_the_start_when_it_is_made_again(self):
        self.top("--text", GPL)
        self.weir("topic", "delete", "lines")
        self.assertEqual(self.top(), (345, b"the"))
        self.assertEqual(self.weir("state", "get", "word-count", "counts", "the"), b"345\n")
        self.weir("topic", "create", "lines")
        with open(GPL, "rb") as text:
            self.weir("produce", "lines", stdin=text.read())
        self.assertEqual(self.top(), (690, b"the"))

    def test_an_interrupt_drains_commits_and_ends_with_0(self):
        process = subprocess.Popen(self.command("word_count", "--text", "-", "--quiet"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        process.stdin.write(b"one two two\n")
        process.stdin.flush()
        self.wait_for_state(b"2\n", "two")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(table(output), [(2, b"two"), (1, b"one")])

    def wait_for_state(self, value, key):
        """Asks beside the running program until it has counted; the deadline is generous, not timed."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            done = subprocess.run(self.command("weir", "state", "get", "word-count", "counts", key),
                                  capture_output=True, check=False)
            if done.stdout == value:
                return
        self.fail(f"{key} was not counted: {done.stderr.decode()}")

    def test_a_second_writer_is_refused_and_told_who_holds_the_directory(self):
        process = subprocess.Popen(self.command("word_count", "--text", "-", "--quiet"), stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        process.stdin.write(b"word\n")
        process.stdin.flush()
        self.wait_for_state(b"1\n", "word")
        self.assert_fails(1, "data", f"pid {process.pid} (word_count)", arguments=("topic", "create", "x"))
        self.assertEqual(self.weir("consume", "lines"), b"word\n")


class Mistakes(Case):
    def test_each_is_named(self):
        self.assert_fails(3, "no/such/file", program="word_count", arguments=("--text", "no/such/file"))
        self.assert_fails(2, "commit.interval.ms", "commit.intervall.ms", program="word_count",
                          arguments=("--until-end", "--config", "commit.intervall.ms=5"))
        self.assert_fails(2, "--threads", program="word_count", arguments=("--threads", "many"))
        self.assert_fails(2, "bad name", program="word_count", arguments=("--until-end", "--output", "bad name"))


if __name__ == "__main__":
    assert os.path.exists(os.path.join(BIN, "word_count"))
    assert oracle(b"a b a") == {b"a": 2, b"b": 1}
    unittest.main()
