"""Tests of scripts/check_style.py: one file per rule, broken and kept."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_style  # noqa: E402


class CheckStyle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def problems(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        found = check_style.check_tree(self.root)
        file.unlink()
        return found

    def assert_refused(self, path, text, line, reason):
        found = self.problems(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:{line}: "), found[0])
        self.assertIn(reason, found[0])

    def assert_allowed(self, path, text):
        self.assertEqual(self.problems(path, text), [])

    def test_bans_calls_that_go_around_the_ports(self):
        for code, reason in [
            ("auto t = std::chrono::steady_clock::now();", "Clock"),
            ("int r = rand();", "Rng"),
            ("std::random_device device;", "Rng"),
            ("std::ifstream file(path);", "FileSystem"),
            ("std::filesystem::remove_all(path);", "FileSystem"),
            ("std::this_thread::sleep_for(delay);", "wait on"),
            ("usleep(5);", "wait on"),
            ("thread.detach();", "join"),
            ("volatile int x = 0;", "atomic"),
            ("std::mutex mutex;", "MutexLock"),
            ("std::lock_guard lock(mutex);", "MutexLock"),
            ("throw 1;", "Result"),
            ("assert(x);", "WEIR_ASSERT"),
            ("std::cerr << x;", "WEIR_INFO"),
            ("printf(x);", "WEIR_INFO"),
            ("std::getenv(name);", "settings"),
            ("using namespace std;", "name what you use"),
            ("#include <iostream>", "slow to compile"),
        ]:
            self.assert_refused("log/segment/x.cc", f"int a;\n{code}\n", 2, reason)

    def test_the_real_side_of_the_ports_may(self):
        self.assert_allowed("runtime/io/x.cc", "auto t = std::chrono::steady_clock::now();\n")
        self.assert_allowed("runtime/exec/x.cc", "std::this_thread::sleep_for(delay);\n")

    def test_tests_sleep_neither(self):
        self.assert_refused("tests/log/x_test.cc", "std::this_thread::sleep_for(delay);\n", 1, "manual clock")

    def test_similar_names_are_no_calls(self):
        self.assert_allowed("log/x.cc", "int operand(int x);\nint y = operand(1);\nclock.now();\n"
                                        "static_assert(true);\nWEIR_ASSERT(x);\nfmt::format(x);\nsnprintf(b, 1, f);\n")

    def test_ignores_comments_and_literals(self):
        self.assert_allowed("log/x.cc", '// throw, volatile\n/* std::mutex\n rand() */\nauto s = "throw rand()";\n'
                                        "auto r = R\"(std::cerr << assert(1))\";\nint n = 1'000'000;\nchar c = '\"';\n")

    def test_literals_do_not_move_line_numbers(self):
        self.assert_refused("log/x.cc", 'auto r = R"(a\nb\nc)";\n/* d\n e */\nthrow 1;\n', 6, "Result")

    def test_a_header_starts_with_pragma_once(self):
        self.assert_refused("log/x.h", "\n#pragma once\n", 1, "#pragma once")
        self.assert_refused("log/x.h", "#include <vector>\n#pragma once\n", 1, "#pragma once")

    def test_a_class_with_a_lock_says_how_threads_share_it(self):
        header = "#pragma once\n\n{}class Queue {{\n  {};\n}};\n"
        for member in ["Mutex mutex_", "mutable Mutex mutex_", "std::atomic<int> count_", "CondVar ready_",
                       "std::jthread thread_"]:
            self.assert_refused("log/x.h", header.format("", member), 4, "Threading:")
            self.assert_allowed("log/x.h", header.format("// Threading: thread-safe.\n", member))
            self.assert_allowed("log/x.h", header.format("// Locks: mutex_, never held during I/O.\n", member))

    def test_unfinished_work_needs_an_issue(self):
        self.assert_refused("log/x.cc", "int a;\n// TODO: more\n", 2, "TODO")
        self.assert_refused("log/x.cc", "// FIXME\n", 1, "FIXME")
        self.assert_refused("README.md", "# Weir\n\nXXX\n", 3, "XXX")
        self.assert_allowed("log/x.cc", "// TODO(#12): more\n")

    def test_a_file_ends_at_800_lines(self):
        self.assert_allowed("log/x.cc", "int a;\n" * 800)
        self.assert_refused("log/x.cc", "int a;\n" * 801, 801, "limit is 800")

    def test_a_page_has_one_title(self):
        self.assert_allowed("docs/x.md", "# A\n\n```sh\n# no title\n```\n\n## B\n")
        self.assert_refused("docs/x.md", "# A\n\n# B\n", 3, "2 titles")
        self.assert_refused("docs/x.md", "text\n", 1, "0 titles")

    def test_files_with_tests_are_called_so(self):
        self.assert_refused("tests/log/x.cc", "\nTEST(A, B) {}\n", 1, "_test.cc")
        self.assert_allowed("tests/log/x_test.cc", "\nTEST(A, B) {}\n")
        self.assert_allowed("tests/log/builders.cc", "int a;\n")

    def test_the_last_line_ends(self):
        self.assert_refused("log/x.cc", "int a;\nint b;", 2, "no end")

    def test_test_data_is_left_alone(self):
        self.assert_allowed("tests/data/x.md", "FIXME")

    def test_the_tree_keeps_the_rules(self):
        self.assertEqual(check_style.check_tree(ROOT), [])


if __name__ == "__main__":
    unittest.main()
