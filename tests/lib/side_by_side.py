"""Tests side by side: which of them share a process, which come first, what they take in turn.

pytest-xdist gives each of its processes one group of tests after another. A group is

- a file, so that what a module starts is started once;
- one test of a file in `SPREAD`, whose many long tests share nothing;
- everything with one name in `TOGETHER`: what shares a Spark session or a server, or would fill
  every core twice over if two of them ran at once.

The chains of `TOGETHER` come first. After them those that wait and those that compute take turns,
long ones before short ones, and the shortest fill up what is left at the end.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"

TOGETHER = {
    "tests/spark_analytics/cluster/": "jvms",
    "tests/spark_analytics/dashboard/": "dashboard",
    "tests/spark_analytics/": "spark",
    "tests/e2e/test_demo_with_spark.py": "jvms",
    "tests/e2e/test_pipeline_connectors.py": "elasticsearch",
    "tests/e2e/test_search_on_elasticsearch.py": "elasticsearch",
    "tests/e2e/": "pipeline",
    "tests/connect/test_elasticsearch.py": "elasticsearch",
    "tests/connect/test_real_parts.py": "elasticsearch",
    "tests/connect/test_round_trips_documents.py": "elasticsearch",
    "tests/services/test_search_index.py": "elasticsearch",
    "tests/interop/test_bad_batches.py": "apache-kafka",
    "tests/interop/test_bad_coordinator_input.py": "apache-kafka",
    "tests/interop/test_tool_status.py": "apache-kafka",
}
"""The first that fits counts. `jvms` are the tests that start several, `spark` shares a session."""
SPREAD = (
    "tests/interop/test_cluster_faults.py",
    "tests/sim/test_quorum_mutations.py",
)
WAITING = {"e2e", "interop"}
LAST_WAITING = 0.8
"""Where in the run the last long one begins: what is over in a moment fills up the end."""


def group_of(node_id: str) -> str:
    """Name the group of a test; those of one group run one after another in one process."""
    file = node_id.partition("::")[0]
    if file in SPREAD:
        return node_id
    return next((name for prefix, name in TOGETHER.items() if file.startswith(prefix)), file)


def ranks(groups: dict[str, set[str]]) -> dict[str, float]:
    """Rank groups by the marks of their tests: the smaller rank runs earlier.

    The chains come first. Of the others those that start programs mostly wait for them, the rest
    only compute: each kind is spread over the run, so that no processor has nothing to do.
    """
    chains = groups.keys() & set(TOGETHER.values())
    longest_first = sorted(
        groups.keys() - chains,
        key=lambda group: ("e2e" not in groups[group], "slow" not in groups[group], group),
    )
    waiting = [group for group in longest_first if groups[group] & WAITING]
    computing = [group for group in longest_first if not groups[group] & WAITING]
    return {
        **dict.fromkeys(chains, -1.0),
        **{group: LAST_WAITING * at / len(waiting) for at, group in enumerate(waiting)},
        **{group: at / len(computing) for at, group in enumerate(computing)},
    }


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Let one process make what several would make at once: the others wait, then find it."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
