"""The values on a node's `/metrics` page."""

import urllib.request

from millstream.testing import LocalCluster


def metrics_of(cluster: LocalCluster, node_id: int) -> dict[str, float]:
    """Return every value by its name, with its labels as on the page."""
    return metrics_at(cluster.node(node_id).http_url)


def metrics_at(url: str) -> dict[str, float]:
    """Return the values of the node that serves HTTP there."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }
