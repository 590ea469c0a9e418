"""The groups and the order of tests that run in parallel, and locks for shared resources.

pytest-xdist gives each of its processes one group of tests after another. A group is

- a file, so that the servers of a module are started once;
- one test of a file in `SPREAD`, whose many long tests share nothing;
- all tests with the same name in `TOGETHER`: they share a Spark session or a server, or each of
  them uses all cores.

The chains of `TOGETHER` run first. Then tests that wait and tests that compute alternate, long ones
before short ones; the shortest run at the end.
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
    "tests/connect/connectors/elasticsearch/test_elasticsearch.py": "elasticsearch",
    "tests/connect/connectors/round_trips/test_real_parts.py": "elasticsearch",
    "tests/connect/connectors/round_trips/test_round_trips_documents.py": "elasticsearch",
    "tests/services/test_search_index.py": "elasticsearch",
    "tests/interop/limits/test_bad_batches.py": "apache-kafka",
    "tests/interop/limits/test_bad_coordinator_input.py": "apache-kafka",
    "tests/interop/tools/test_tool_status.py": "apache-kafka",
}
"""The first match counts. Tests of `jvms` start several JVMs, those of `spark` share a session."""
SPREAD = (
    "tests/demo/labs/test_labs.py",
    "tests/demo/labs/test_mirror_walks.py",
    "tests/interop/cluster/test_cluster_faults.py",
    "tests/sim/test_quorum_mutations.py",
)
WAITING = {"e2e", "interop"}
LAST_WAITING = 0.8
"""The position in the run at which the last long group begins; short ones run at the end."""


def group_of(node_id: str) -> str:
    """Return the group of a test; tests of a group run one after another in one process."""
    file = node_id.partition("::")[0]
    if file in SPREAD:
        return node_id
    return next((name for prefix, name in TOGETHER.items() if file.startswith(prefix)), file)


def ranks(groups: dict[str, set[str]]) -> dict[str, float]:
    """Rank groups by the marks of their tests; a smaller rank runs earlier.

    The chains come first. Of the other groups, those that start programs mostly wait, and the rest
    only compute. Both kinds are spread over the run, so that no processor is idle.
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
    """Let one process create a resource that several need; the others wait, then use it."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
