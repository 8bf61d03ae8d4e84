#!/usr/bin/env python3
"""Reads every #include of the tree and refuses a crossing of the layers (docs/architecture.md).

What is refused:
  - an include of a folder that the table does not allow;
  - another folder's internal header, and a quoted path that does not start at the project's root;
  - in a public header: anything but the standard library, <fmt/core.h> and public headers;
  - a third-party library in a folder that must not know it;
  - production code that includes what is for tests;
  - inside log/, an include against the order of its parts.

Usage: check_layers.py [ROOT]      Prints "file:line: message", exits 1 when there was any.
"""

import pathlib
import re
import sys

# folder -> the folders whose public headers it may include
LAYERS = {
    "runtime": set(),
    "log": {"runtime"},
    "state": {"runtime"},
    "operators": {"runtime", "state"},
    "apps": {"runtime", "log", "state", "operators"},
    "bench": {"runtime", "log", "state", "operators"},
    "tests": {"runtime", "log", "state", "operators"},
}
LIBRARIES = ("runtime", "log", "state", "operators")
SEES_INTERNALS = ("bench", "tests")

# Parts of log/, lowest first: each may include itself and what stands before it.
LOG_ORDER = ["record", "segment", "durability", "partition", "compaction", "dump", "verify", "metadata", "coordinator", "broker", "client", "embedded", "stored"]

# first part of a third-party path -> (name, the library folders that may include it);
# apps, bench and tests may include all of them.
THIRD_PARTY = {
    "boost/asio": ("Boost.Asio", {"runtime", "log"}),
    "tbb": ("TBB", {"runtime", "log", "state"}),
    "oneapi": ("TBB", {"runtime", "log", "state"}),
    "rocksdb": ("RocksDB", {"state"}),
    "google/protobuf": ("Protocol Buffers", {"state", "operators"}),
    "librdkafka": ("librdkafka", {"log"}),
    "CLI": ("CLI11", set()),
    "nlohmann": ("nlohmann-json", {"log"}),
}
PUBLIC_THIRD_PARTY = {"fmt/core.h"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SKIPPED_FOLDERS = {"data", "package", "__pycache__"}


def sources(root):
    for folder in LAYERS:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix in (".h", ".cc") and not SKIPPED_FOLDERS.intersection(relative.parts):
                yield relative


def without_comments(text):
    """Blanks out comments, so that an #include in a comment does not count."""
    blank = lambda match: "\n" * match.group().count("\n")
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*//[^\n]*", "", text, flags=re.MULTILINE)


def is_public(relative):
    return len(relative.parts) > 3 and relative.parts[1:3] == ("include", "weir")


def is_for_tests(parts):
    return "testing" in parts or parts[0] in SEES_INTERNALS


def check_public_include(relative, included):
    """An include of <weir/FOLDER/...>."""
    folder = relative.parts[0]
    parts = included.split("/")
    target = parts[1]
    if target not in LIBRARIES:
        return f"<{included}>: there is no folder {target}"
    if target != folder and target not in LAYERS[folder]:
        allowed = ", ".join(sorted(LAYERS[folder])) or "nothing of ours"
        return f"{folder} may include {allowed}, not {target}"
    if "testing" in parts and not is_for_tests(relative.parts):
        return f"<{included}> is for tests, not for production code"
    return None


def check_quoted(relative, included):
    """An include of "folder/part/x.h"."""
    folder = relative.parts[0]
    parts = included.split("/")
    if len(parts) == 1 and included.endswith(".pb.h"):
        return check_generated(relative, included)
    if is_public(relative):
        return f'a public header includes public headers only, as <weir/...>, not "{included}"'
    if len(parts) < 2 or parts[0] not in LAYERS:
        return f'"{included}": write the path from the project\'s root, or <...> for a library'
    if len(parts) > 3 and parts[1:3] == ["include", "weir"]:
        return f'"{included}" is a public header: write <{"/".join(parts[2:])}>'
    if parts[0] != folder and folder not in SEES_INTERNALS:
        return f'"{included}" is internal to {parts[0]}: use its public headers'
    if "testing" in parts and not is_for_tests(relative.parts):
        return f'"{included}" is for tests, not for production code'
    if folder == "log" and parts[0] == "log" and len(parts) > 2 and len(relative.parts) > 2:
        return check_log_order(relative.parts[1], parts[1])
    return None


def check_generated(relative, included):
    """A header that protoc makes from a .proto of the same folder; it stands in the build tree."""
    if is_public(relative):
        return f"public headers stay light: no Protocol Buffers ({included})"
    return check_third_party(relative, f"google/protobuf/{included}")


def check_log_order(part, target):
    unknown = [name for name in (part, target) if name not in LOG_ORDER]
    if unknown:
        return f"log/{unknown[0]} has no place in the order of log/: add it to LOG_ORDER in scripts/check_layers.py"
    if LOG_ORDER.index(target) > LOG_ORDER.index(part):
        return f"log/{part} stands below log/{target} and must not include it ({' <- '.join(LOG_ORDER)})"
    return None


def check_third_party(relative, included):
    folder = relative.parts[0]
    if is_public(relative):
        if "/" in included and included not in PUBLIC_THIRD_PARTY:
            return f"public headers stay light: the standard library and <fmt/core.h>, not <{included}>"
        return None
    for prefix, (name, allowed) in THIRD_PARTY.items():
        if included.startswith(prefix + "/") or included.startswith(prefix + "."):
            if folder in LIBRARIES and folder not in allowed:
                return f"{folder} must not know {name} (<{included}>)"
    return None


def check_include(relative, bracket, included):
    if bracket == '"':
        return check_quoted(relative, included)
    if included.startswith("weir/"):
        return check_public_include(relative, included)
    return check_third_party(relative, included)


def check_tree(root):
    problems = []
    for relative in sources(root):
        text = without_comments((root / relative).read_text(encoding="utf-8"))
        for match in INCLUDE.finditer(text):
            problem = check_include(relative, match.group(1), match.group(2))
            if problem:
                line = text.count("\n", 0, match.start(2)) + 1
                problems.append(f"{relative}:{line}: {problem}")
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    problems = check_tree(root)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
