#!/usr/bin/env python3
"""The rules of CONTRIBUTING.md that no compiler checks.

Usage: check_style.py [ROOT]      Prints "file:line: message", exits 1 when there was any.
"""

import pathlib
import re
import subprocess
import sys

LIBRARIES = ("runtime", "log", "state", "operators")
CODE = LIBRARIES + ("apps", "bench", "tests")
LINES_MAX = 800
SKIPPED_FOLDERS = {"data", "__pycache__"}

# What touches time, disk, randomness and threads for everybody else (the real side of the ports).
REAL_SIDE = ("runtime/io/", "runtime/exec/")
MUTEX_HOME = ("runtime/include/weir/runtime/thread_annotations.h",)


class Ban:
    """A call that must not stand in `folders`, save in files whose path starts with one of `homes`."""

    def __init__(self, pattern, instead, folders=LIBRARIES + ("apps",), homes=REAL_SIDE):
        self.pattern = re.compile(pattern)
        self.instead = instead
        self.folders = folders
        self.homes = homes

    def applies_to(self, path):
        return path.split("/")[0] in self.folders and not path.startswith(self.homes)


BANS = [
    Ban(r"_clock\s*::\s*now\s*\(", "take the time from a Clock"),
    Ban(r"\b(std::)?s?rand\s*\(", "take randomness from a seeded Rng"),
    Ban(r"\bstd::random_device\b", "take randomness from a seeded Rng"),
    Ban(r"\bstd::(basic_)?[io]?fstream\b", "read and write through FileSystem",
        folders=LIBRARIES),
    Ban(r"\bstd::filesystem::(create_\w+|remove\w*|rename|resize_file|copy\w*|permissions|last_write_time)\s*\(",
        "change files through FileSystem", folders=LIBRARIES),
    Ban(r"\b(std::this_thread::sleep_(for|until)|u?sleep|nanosleep)\s*\(",
        "wait on a Clock, an Executor or a CondVar; tests use the manual clock",
        folders=LIBRARIES + ("apps", "tests")),
    Ban(r"\.\s*detach\s*\(\s*\)", "join every thread", folders=CODE, homes=()),
    Ban(r"\bvolatile\b", "use std::atomic or a Mutex", homes=REAL_SIDE),
    Ban(r"\bstd::(recursive_|shared_|timed_)?mutex\b|\bstd::(lock_guard|unique_lock|scoped_lock|condition_variable)\b",
        "use Mutex, MutexLock and CondVar of <weir/runtime/thread_annotations.h>", homes=MUTEX_HOME + REAL_SIDE),
    Ban(r"\bthrow\b(?!;)", "return a Result: errors are values (docs/adr/0001)", folders=LIBRARIES, homes=()),
    Ban(r"\bassert\s*\(", "use WEIR_ASSERT, which is on in release too", homes=()),
    Ban(r"\bstd::c(out|err|log)\b|\bv?f?printf\s*\(", "libraries speak through WEIR_INFO and its siblings",
        folders=LIBRARIES, homes=("runtime/observe/", "runtime/base/assert.cc",
                                  "runtime/include/weir/runtime/assert.h",
                                  "runtime/base/result.cc")),
    Ban(r"\bgetenv\s*\(", "settings are passed down; only programs read the environment", folders=LIBRARIES, homes=()),
    Ban(r"\busing\s+namespace\b", "name what you use", folders=CODE, homes=()),
    Ban(r"#\s*include\s*<(iostream|regex)>", "slow to compile and not needed in a library", folders=LIBRARIES, homes=()),
]

# Words that mark unfinished work; an issue number makes the first one a note.
UNFINISHED = re.compile(r"\b(TODO(?!\(#\d+\))|FIXME|XXX)\b")
SHARED_MEMBER = re.compile(r"^\s+(mutable\s+)?(Mutex|CondVar|std::atomic<.*>|std::jthread|std::thread)\s+\w+_?\b.*;")
LITERAL = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def tracked_files(root):
    """What git knows or would add; every file below `root` when it is no work tree."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    for name in sorted(filter(None, names)):
        path = pathlib.PurePosixPath(name)
        if (root / name).is_file() and not SKIPPED_FOLDERS.intersection(path.parts):
            yield path


def code_only(text):
    """Blanks out comments and the contents of literals; line numbers stay."""

    def blank(match):
        found = match.group()
        lines = "\n" * found.count("\n")
        return lines if found.startswith("/") else '""' + lines

    # Digit separators (1'000'000) are no character literals.
    return LITERAL.sub(blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text))


def check_bans(path, code):
    bans = [ban for ban in BANS if ban.applies_to(str(path))]
    for number, line in enumerate(code.splitlines(), 1):
        for ban in bans:
            found = ban.pattern.search(line)
            if found:
                yield number, f"{found.group().strip()}: {ban.instead}"


def check_header(path, text, code):
    if not text.startswith("#pragma once\n"):
        yield 1, "#pragma once stands on the first line of a header"
    if path.parts[0] in LIBRARIES and not re.search(r"\b(Threading|Locks):", text):
        for number, line in enumerate(code.splitlines(), 1):
            if SHARED_MEMBER.match(line):
                yield number, "a class that threads share says how in a comment line `Threading: ...` (or `Locks: ...`)"
                break


def check_code(path, text):
    code = code_only(text)
    yield from check_bans(path, code)
    if path.suffix == ".h":
        yield from check_header(path, text, code)
    lines = text.count("\n")
    if lines > LINES_MAX:
        yield lines, f"{lines} lines: the limit is {LINES_MAX}, cut it in two"
    if path.parts[0] == "tests" and path.suffix == ".cc" and path.parts[1:2] in [(name,) for name in LIBRARIES]:
        if re.search(r"^\s*(TEST|TEST_F|TEST_P|TYPED_TEST)\(", code, re.MULTILINE) and not path.stem.endswith("_test"):
            yield 1, "a file with tests is called ..._test.cc"


def check_markdown(text):
    titles, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and line.startswith("# "):
            titles.append(number)
    if len(titles) != 1:
        yield (titles[1] if titles else 1), f"{len(titles)} titles (`# ...`): a page has one"


def check_text(path, text):
    """Rules for every text file."""
    if path.parts[:2] != ("scripts", "check_style.py") and path.parts[:2] != ("tests", "scripts"):
        for number, line in enumerate(text.splitlines(), 1):
            found = UNFINISHED.search(line)
            if found:
                yield number, f"{found.group()}: finish it, or write an issue and name it: TODO(#12)"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "the last line has no end"


def check_file(root, path):
    if path.suffix not in (".h", ".cc", ".md", ".py", ".txt", ".cmake", ".proto", ".json", ".in", "") or path.name == "LICENSE":
        return
    try:
        text = (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        yield 1, "not UTF-8"
        return
    yield from check_text(path, text)
    if path.suffix in (".h", ".cc"):
        yield from check_code(path, text)
    if path.suffix == ".md":
        yield from check_markdown(text)


def check_tree(root):
    return [f"{path}:{line}: {problem}" for path in tracked_files(root) for line, problem in check_file(root, path)]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    problems = check_tree(root)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
