"""Chaos: faults in an order that a seed decides, during a test, and the smallest plan that fails.

from millstream.testing import chaos

def test_no_sale_is_lost(kafka_cluster):
    def attempt(trial):
        topic = trial.topic("sales", partitions=3)  # a new one for each attempt
        shop = Shop(kafka_cluster.bootstrap_servers, topic)
        for step in trial:
            with step:  # a fault: a broker is killed, an answer is lost, ...
                shop.sell(10)
            assert shop.sold == shop.counted()  # it is over, and the cluster is whole

    chaos.run(kafka_cluster, attempt, seed=7)

schedule  the kinds of faults: pure
breaking  what each does to a cluster and to programs, and how it ends
trial     one attempt: the steps of a plan, one fault each
search    `run`: many plans, and the smallest one that fails
"""

from millstream.testing.chaos.breaking import Breaking, NotWholeError
from millstream.testing.chaos.schedule import ALL_FAULTS, CALLS, Fault, Target
from millstream.testing.chaos.search import ChaosError, run
from millstream.testing.chaos.trial import Trial

__all__ = [
    "ALL_FAULTS",
    "CALLS",
    "Breaking",
    "ChaosError",
    "Fault",
    "NotWholeError",
    "Target",
    "Trial",
    "run",
]
