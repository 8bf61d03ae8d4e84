"""Runs the programs as a user does, in a data directory that goes away."""
import os
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ["WEIR_BIN_DIR"]
DATA = os.environ["WEIR_TEST_DATA"]
FULL = os.environ.get("WEIR_TEST_FULL") == "1"
GPL = "/usr/share/common-licenses/GPL-3"
TIMEOUT = 600 if FULL else 120


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = os.path.join(self.folder, "data")

    def command(self, program, *arguments):
        return [os.path.join(BIN, program), "--data", self.data, *arguments]

    def run_program(self, program, *arguments, stdin=b"", code=0):
        """Returns stdout as bytes; the test fails when the exit code is another."""
        done = subprocess.run(self.command(program, *arguments), input=stdin, capture_output=True, timeout=TIMEOUT,
                              check=False)
        self.stderr = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, f"{program} {arguments}\n{self.stderr}")
        return done.stdout

    def weir(self, *arguments, **keywords):
        return self.run_program("weir", *arguments, **keywords)

    def word_count(self, *arguments, **keywords):
        return self.run_program("word_count", "--quiet", "--until-end", *arguments, **keywords)

    def assert_fails(self, code, *parts, program="weir", arguments=(), stdin=b""):
        """The command ends with `code` and its message has all `parts`."""
        self.run_program(program, *arguments, stdin=stdin, code=code)
        for part in parts:
            self.assertIn(part, self.stderr)


def oracle(text):
    """Counts of a text as the shell's own tools see it: {word: count}."""
    if text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
    pipeline = ("LC_ALL=C tr A-Z a-z | LC_ALL=C tr -cs 'a-z0-9_\\200-\\377' '\\n' | LC_ALL=C grep -a . | "
                "LC_ALL=C sort | LC_ALL=C uniq -c")
    done = subprocess.run(["bash", "-c", pipeline], input=text, capture_output=True, check=False)
    rows = [line.strip().split(b" ", 1) for line in done.stdout.splitlines()]
    return {word: int(count) for count, word in rows}


def table(output):
    """What word_count printed: [(count, word)] in its order."""
    rows = [line.split(b"\t", 1) for line in output.splitlines()]
    return [(int(count), word) for count, word in rows]


def expected_table(text):
    return sorted(((count, word) for word, count in oracle(text).items()), key=lambda row: (-row[0], row[1]))
