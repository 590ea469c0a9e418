"""The progress of the tasks that run here, from their metrics."""

from typing import Any, Final, NamedTuple

from mirror.dedicated.flow_workers import FlowWorker

_OFFSET: Final = "_replication_offset"
_LAG: Final = "_replication_offset_lag"

At = tuple[str, int]
"""A topic, by its name in the target, and a partition."""


class Progress(NamedTuple):
    """The first offset of the source without a copy, and the number of such offsets."""

    offset: int
    lag: int


def progress(flow: FlowWorker) -> dict[At, Progress]:
    """Return the progress of every partition that a task here copies."""
    cluster = flow.cluster
    counts = () if cluster is None else cluster.worker.task_counts().values()
    offsets: dict[At, int] = {}
    lags: dict[At, int] = {}
    for each in counts:
        for name, labels, value in each.own_metrics():
            found = offsets if name.endswith(_OFFSET) else lags if name.endswith(_LAG) else None
            if found is not None:
                found[labels["topic"], int(labels["partition"])] = int(value)
    return {at: Progress(offset, lags[at]) for at, offset in offsets.items()}


def by_topic(found: dict[At, Progress]) -> dict[str, Any]:
    """Return the progress as JSON: each topic's lag, and each partition's offset."""
    topics: dict[str, Any] = {}
    for (topic, partition), each in sorted(found.items()):
        body = topics.setdefault(topic, {"lag": 0, "offsets": {}})
        body["lag"] += each.lag
        body["offsets"][str(partition)] = each.offset
    return topics
