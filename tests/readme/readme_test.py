"""README.md and docs stay true: the program in README is the real file, its commands run and print what is
claimed, and every link leads somewhere.

Usage: readme_test.py BIN_DIR
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build" / "bin"
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
ATTEMPTS_MAX = 2000


def pages():
    return [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")] + sorted(
        (ROOT / "docs").rglob("*.md"))


class Readme(unittest.TestCase):
    def test_the_program_is_the_real_file(self):
        block = re.search(r"```cpp\n(.*?)```", README, re.DOTALL).group(1)
        self.assertEqual(block, (ROOT / "apps/examples/count_words.cc").read_text(encoding="utf-8"))

    def test_links_lead_somewhere(self):
        broken = []
        for page in pages():
            for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
                if "://" not in target and not (page.parent / target).exists():
                    broken.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(broken, [])

    def test_named_scripts_and_pages_exist(self):
        missing = []
        for page in pages():
            text = page.read_text(encoding="utf-8")
            for name in re.findall(r"\b(?:scripts|docs|cmake|tests)/[\w./-]+\w", text):
                if not (ROOT / name).exists() and not list(ROOT.glob(f"{name}*")):
                    missing.append(f"{page.relative_to(ROOT)}: {name}")
        self.assertEqual(missing, [])

    def command(self, line):
        """A command line of README's, run in the test's folder with the programs of this build."""
        self.assertIn(line, README)
        line = line.replace("./build/bin/", f"{BIN}/")
        return subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False)

    def test_the_program_counts_beside_the_tool_and_stops_on_ctrl_c(self):
        with tempfile.TemporaryDirectory() as folder:
            self.folder = folder
            self.env = {name: value for name, value in os.environ.items() if name != "WEIR_DATA"}
            for line in ["./build/bin/weir topic create lines", "./build/bin/weir topic create word-counts",
                         "echo 'to be or not to be' | ./build/bin/weir produce lines"]:
                result = self.command(line)
                self.assertEqual(result.returncode, 0, f"{line}\n{result.stderr}")
            program = subprocess.Popen([BIN / "count_words"], cwd=folder, env=self.env, stdin=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            try:
                counts = {}
                for _ in range(ATTEMPTS_MAX):
                    scan = self.command("./build/bin/weir state scan my-count counts")
                    counts = dict(line.split("\t")[:2] for line in scan.stdout.splitlines())
                    if len(counts) == 4 or program.poll() is not None:
                        break
                self.assertIsNone(program.poll(), "the program ended by itself")
                self.assertEqual(counts, {"be": "2", "not": "1", "or": "1", "to": "2"}, scan.stderr)
            finally:
                program.send_signal(signal.SIGINT)
                _, diagnostics = program.communicate(timeout=60)
            self.assertEqual(program.returncode, 0, diagnostics)
            scan = self.command("./build/bin/weir state scan my-count counts")
            self.assertEqual(len(scan.stdout.splitlines()), 4, scan.stderr)


if __name__ == "__main__":
    unittest.main()
