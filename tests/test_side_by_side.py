"""Which tests share a process and which come first; what the report of their durations says."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

from millstream.processes.cluster_layout import free_ports
from tests.lib.side_by_side import group_of, ranks
from tests.lib.slowest import slowest

ROOT = Path(__file__).parents[1]
REPORT = """<testsuites><testsuite>
  <testcase classname="tests.one.test_a" name="test_quick" time="0.5"/>
  <testcase classname="tests.one.test_a" name="test_slow[1]" time="20"/>
  <testcase classname="tests.test_b" name="test_middling" time="3.25"/>
</testsuite></testsuites>"""


def test_the_tests_of_a_file_share_what_its_module_starts():
    assert group_of("tests/a/test_b.py::test_one") == group_of("tests/a/test_b.py::test_two[x::y]")
    assert group_of("tests/a/test_b.py::test_one") != group_of("tests/a/test_c.py::test_one")


def test_all_that_uses_spark_comes_one_after_another():
    jobs = group_of("tests/spark_analytics/jobs/test_transforms.py::test_one")
    assert jobs == group_of("tests/spark_analytics/source/test_planner.py::test_one")


def test_long_tests_that_share_nothing_are_spread():
    file = "tests/sim/test_quorum_mutations.py"
    assert group_of(f"{file}::test_a[one]") != group_of(f"{file}::test_a[two]")


def test_chains_come_first_and_long_ones_before_short_ones():
    marks = {"quick": set(), "x": {"interop"}, "slow": {"slow"}, "demo": {"slow", "e2e"}}
    found = ranks({**marks, "spark": {"slow"}})
    order = sorted(found, key=found.__getitem__)
    assert order[0] == "spark"
    assert order.index("demo") < order.index("x")
    assert order.index("slow") < order.index("quick")


def test_those_that_wait_and_those_that_compute_take_turns():
    waiting = {f"w{number}": {"interop"} for number in range(10)}
    computing = {f"c{number}": set() for number in range(30)}
    found = ranks({**waiting, **computing})
    kinds = "".join(name[0] for name in sorted(found, key=found.__getitem__))
    assert kinds.startswith("wcccwcc")
    assert kinds.endswith("cccccc")


def test_processes_side_by_side_never_have_a_port_in_common():
    ports = "from millstream.processes.cluster_layout import free_ports"
    code = f"{ports}; print(*free_ports(), flush=True); input()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    given: list[str] = []
    for process in processes:
        assert process.stdout is not None
        given += process.stdout.readline().split()
    for process in processes:
        process.communicate("\n")
    assert len(given) > len(processes)
    assert len(given) == len(set(given))


def test_a_port_that_was_given_is_not_given_again_before_all_others():
    given = [port for _ in range(100) for port in islice(free_ports(), 5)]
    assert len(set(given)) == 500


def test_the_slowest_tests_and_files_are_listed_first():
    lines = slowest([REPORT, "<testsuites/>"])
    assert lines[1] == "    20.0  tests/one/test_a.py::test_slow[1]"
    assert lines[6] == "    20.5  tests/one/test_a.py"
    assert lines[-1] == "All tests one after another: 24 s."
