"""Tests of scripts/check_layers.py: small trees with one crossing each."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_layers  # noqa: E402


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def problems(self, path, *lines):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = check_layers.check_tree(self.root)
        file.unlink()
        return found

    def assert_allowed(self, path, line):
        self.assertEqual(self.problems(path, line), [])

    def assert_refused(self, path, line, reason):
        found = self.problems(path, "#pragma once", line)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:2: "), found[0])
        self.assertIn(reason, found[0])

    def test_every_folder_may_include_only_what_the_table_allows(self):
        folders = ["runtime", "log", "state", "operators"]
        allowed = {"runtime": "runtime", "log": "log runtime", "state": "state runtime",
                   "operators": "operators state runtime", "apps": "runtime log state operators",
                   "tests": "runtime log state operators", "bench": "runtime log state operators"}
        for folder, targets in allowed.items():
            for target in folders:
                line = f"#include <weir/{target}/x.h>"
                if target in targets.split():
                    self.assert_allowed(f"{folder}/part/x.cc", line)
                else:
                    self.assert_refused(f"{folder}/part/x.cc", line, f"not {target}")

    def test_refuses_a_folder_that_does_not_exist(self):
        self.assert_refused("apps/x.cc", "#include <weir/quorum/x.h>", "no folder quorum")

    def test_refuses_another_folders_internal_header(self):
        self.assert_refused("operators/x.cc", '#include "state/store/table.h"', "internal to state")
        self.assert_refused("apps/x.cc", '#include "log/segment/segment.h"', "internal to log")

    def test_tests_and_benchmarks_see_internal_headers(self):
        self.assert_allowed("tests/log/x_test.cc", '#include "log/segment/segment.h"')
        self.assert_allowed("bench/micro/x.cc", '#include "log/segment/segment.h"')

    def test_refuses_quoted_paths_that_do_not_start_at_the_root(self):
        self.assert_refused("log/segment/x.cc", '#include "segment.h"', "from the project's root")
        self.assert_refused("log/segment/x.cc", '#include "../record/x.h"', "from the project's root")

    def test_refuses_a_public_header_in_quotes(self):
        self.assert_refused("apps/x.cc", '#include "log/include/weir/log/producer.h"', "<weir/log/producer.h>")

    def test_public_headers_stay_light(self):
        public = "state/include/weir/state/x.h"
        for header in ["boost/asio.hpp", "tbb/parallel_for.h", "oneapi/tbb.h", "rocksdb/db.h",
                       "google/protobuf/message.h", "librdkafka/rdkafka.h", "CLI/CLI.hpp", "nlohmann/json.hpp",
                       "fmt/format.h", "boost/unordered/unordered_flat_map.hpp"]:
            self.assert_refused(public, f"#include <{header}>", "stay light")
        for header in ["vector", "fmt/core.h", "weir/state/y.h", "weir/runtime/y.h"]:
            self.assert_allowed(public, f"#include <{header}>")

    def test_public_headers_include_no_internal_ones(self):
        self.assert_refused("log/include/weir/log/x.h", '#include "log/segment/segment.h"', "public headers only")

    def test_libraries_know_only_their_third_parties(self):
        self.assert_refused("log/segment/x.cc", "#include <rocksdb/db.h>", "must not know RocksDB")
        self.assert_refused("runtime/base/x.cc", "#include <google/protobuf/message.h>", "Protocol Buffers")
        self.assert_refused("runtime/base/x.cc", "#include <rocksdb/db.h>", "must not know RocksDB")
        self.assert_refused("operators/task/x.cc", "#include <rocksdb/db.h>", "must not know RocksDB")
        self.assert_refused("operators/task/x.cc", "#include <nlohmann/json.hpp>", "nlohmann-json")
        self.assert_refused("log/segment/x.cc", "#include <CLI/CLI.hpp>", "CLI11")
        self.assert_allowed("state/rocksdb/x.cc", "#include <rocksdb/db.h>")
        self.assert_allowed("apps/ctl/x.cc", "#include <CLI/CLI.hpp>")
        self.assert_allowed("log/segment/x.cc", "#include <tbb/parallel_for.h>")

    def test_generated_headers_are_protocol_buffers(self):
        self.assert_allowed("operators/plan/x.cc", '#include "recorded_plan.pb.h"')
        self.assert_refused("log/record/x.cc", '#include "recorded_plan.pb.h"', "Protocol Buffers")
        self.assert_refused("state/include/weir/state/x.h", '#include "recorded_plan.pb.h"', "Protocol Buffers")

    def test_orders_the_parts_of_the_log(self):
        order = ["record", "segment", "durability", "partition", "dump", "verify", "metadata", "coordinator", "broker", "client", "embedded", "stored"]
        for i, part in enumerate(order):
            for j, target in enumerate(order):
                line = f'#include "log/{target}/x.h"'
                if j <= i:
                    self.assert_allowed(f"log/{part}/x.cc", line)
                else:
                    self.assert_refused(f"log/{part}/x.cc", line, f"log/{part} stands below log/{target}")

    def test_asks_for_a_place_of_a_new_part_of_the_log(self):
        self.assert_refused("log/tiered/x.cc", '#include "log/record/x.h"', "no place in the order")

    def test_production_code_includes_nothing_for_tests(self):
        header = "#include <weir/runtime/testing/manual_clock.h>"
        self.assert_refused("log/client/x.cc", header, "for tests")
        self.assert_refused("apps/x.cc", header, "for tests")
        self.assert_allowed("operators/testing/x.cc", header)
        self.assert_allowed("operators/include/weir/operators/testing/x.h", header)
        self.assert_allowed("tests/log/x_test.cc", header)

    def test_ignores_includes_in_comments(self):
        found = self.problems("runtime/base/x.cc", "// #include <weir/log/x.h>", "/*", "#include <weir/log/x.h>", "*/")
        self.assertEqual(found, [])

    def test_names_every_problem_with_file_and_line(self):
        found = self.problems("runtime/base/x.cc", "#include <vector>", "#include <weir/log/x.h>",
                              "", "#  include <weir/state/x.h>")
        self.assertEqual([problem.split(" ")[0] for problem in found],
                         ["runtime/base/x.cc:2:", "runtime/base/x.cc:4:"])

    def test_exit_code_is_one_when_something_is_refused(self):
        (self.root / "runtime").mkdir()
        (self.root / "runtime/x.cc").write_text("#include <weir/log/x.h>\n", encoding="utf-8")
        run = subprocess.run([sys.executable, str(ROOT / "scripts/check_layers.py"), str(self.root)],
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stdout.count("\n")), (1, 1))

    def test_the_tree_holds_the_layers(self):
        self.assertEqual(check_layers.check_tree(ROOT), [])


if __name__ == "__main__":
    unittest.main()
