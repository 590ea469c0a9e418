"""Real brokers and the other servers, for tests, and a pytest fixture for each of them.

from millstream.testing import LocalBroker, LocalCluster

with LocalBroker(num_partitions=3) as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

with LocalCluster(brokers=3) as cluster:
    cluster.kill(cluster.active_controller())

with LocalBroker() as broker:
    rule = broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders").times(3)

with LocalFaultProxy("kafka.example.org:9092") as proxy:  # the same faults before any Kafka
    proxy.faults.lose_answer("Produce").once()

with LocalStack() as stack:
    requests.get(stack.rest_proxy_url + "/topics")

with ClusterView("kafka.example.org:9092") as view:  # any Kafka; the others have these calls too
    view.wait_for_records("orders", 10)
    assert view.group("fraud").lag == 0

The fixtures are `kafka_broker`, `kafka_cluster`, `schema_registry`, `rest_proxy`, `connect_worker`
and `kafka_stack`.
"""

from millstream.testing.faults import UnusedFaultError
from millstream.testing.local_broker import LocalBroker
from millstream.testing.local_cluster import LocalCluster
from millstream.testing.local_fault_proxy import LocalFaultProxy
from millstream.testing.local_program import LocalConnect, LocalRegistry, LocalRestProxy
from millstream.testing.local_stack import LocalStack
from millstream.testing.looking import ClusterView, KafkaRefusedError, NotSeenError
from millstream.testing.node_process import BrokerFailedError
from millstream.testing.running_brokers import RunningBrokers

__all__ = [
    "BrokerFailedError",
    "ClusterView",
    "KafkaRefusedError",
    "LocalBroker",
    "LocalCluster",
    "LocalConnect",
    "LocalFaultProxy",
    "LocalRegistry",
    "LocalRestProxy",
    "LocalStack",
    "NotSeenError",
    "RunningBrokers",
    "UnusedFaultError",
]
