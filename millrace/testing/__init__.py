"""Real brokers for tests: `LocalBroker`, `LocalCluster`, and fixtures of pytest for both.

from millrace.testing import LocalBroker, LocalCluster

with LocalBroker(num_partitions=3) as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

with LocalCluster(brokers=3) as cluster:
    cluster.kill(cluster.active_controller())

The fixtures are `kafka_broker` and `kafka_cluster`.
"""

from millrace.testing.local_broker import LocalBroker
from millrace.testing.local_cluster import LocalCluster
from millrace.testing.node_process import BrokerFailedError

__all__ = ["BrokerFailedError", "LocalBroker", "LocalCluster"]
