#!/usr/bin/env python3
"""Every job of weir_bench runs with a few records and prints figures that are well formed.

Usage: bench_test.py PATH_OF_WEIR_BENCH
"""
import json
import subprocess
import sys

JOBS = ["append", "replay", "tail", "many-consumers", "groups", "transactions", "compression", "compaction",
        "many-topics", "store-hot", "store-cold", "store-big", "scan", "restore", "count", "word-count", "averages",
        "sessions"]
COLUMNS = ["job", "metric", "value", "unit", "ratio", "against"]


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def check_json(program):
    done = run(program, "--records", "2000", "--no-instructions", "-o", "json")
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    for figure in figures:
        assert list(figure) == COLUMNS, figure
        assert isinstance(figure["value"], (int, float)) and figure["value"] >= 0, figure
        assert figure["ratio"] is None or figure["ratio"] > 0, figure
        assert figure["ratio"] is None or figure["against"], figure
        if figure["against"].startswith("measured elsewhere"):
            assert figure["ratio"] is None, figure
    for job in JOBS:
        mine = [figure for figure in figures if figure["job"] == job]
        for metric in ("cpu", "cpu_min", "cpu_max", "rate"):
            assert any(figure["metric"].endswith("weir." + metric) for figure in mine), (job, metric)
        assert any(figure["ratio"] is not None for figure in mine), job
    budgets = {figure["against"] for figure in figures if figure["job"] == "word-count"}
    assert {"budget 250", "budget 450"} <= budgets, budgets


def check_text(program):
    done = run(program, "tail", "--records", "2000", "--no-instructions")
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines and all(len(line) == len(COLUMNS) for line in lines), done.stdout
    assert {line[0] for line in lines} == {"tail"}, done.stdout


def check_mistakes(program):
    done = run(program, "apend")
    assert done.returncode == 2 and not done.stdout and "append" in done.stderr, done
    done = run(program, "--records", "many")
    assert done.returncode == 2 and not done.stdout, done


def main():
    program = sys.argv[1]
    check_mistakes(program)
    check_text(program)
    check_json(program)


if __name__ == "__main__":
    main()
