"""A real broker for tests: `LocalBroker`, and the pytest fixture `kafka_broker`.

from millrace.testing import LocalBroker

with LocalBroker(num_partitions=3) as broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from millrace.testing.local_broker import BrokerFailedError, LocalBroker

__all__ = ["BrokerFailedError", "LocalBroker"]
