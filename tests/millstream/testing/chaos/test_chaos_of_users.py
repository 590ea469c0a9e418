"""Programs with planted bugs under `chaos.run`: each is found, and its plan is made small."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from millstream.testing import LocalBroker, LocalCluster, chaos
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

AFTER, SEED = "REQUEST_TIMED_OUT after the work", 1
SALES, WAIT = 3, 60
QUICK = {"log_level": 0, "retry.backoff.ms": 50, "reconnect.backoff.max.ms": 200}


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as one:
        yield one


class Shop:
    """Sells, and publishes each sale."""

    def __init__(self, kafka: LocalBroker | LocalCluster, topic: str, **settings: object) -> None:
        self.kafka, self.topic, self.sold = kafka, topic, 0
        self.producer = Producer({**kafka.client_settings(), **QUICK, **settings})

    def sell(self) -> None:
        for _ in range(SALES):
            self.producer.produce(self.topic, b"%d" % self.sold)
            self.sold += 1
        assert self.producer.flush(WAIT) == 0

    def is_balanced(self) -> bool:
        return len(self.kafka.records(self.topic)) == self.sold


def try_shop(kafka: LocalBroker | LocalCluster, trial: chaos.Trial, **settings: object) -> None:
    shop = Shop(kafka, trial.topic("sales"), **settings)
    for step in trial:
        with step:
            shop.sell()
        assert shop.is_balanced(), "a sale is lost, or there twice"


def test_records_that_are_sent_twice_are_found_in_one_step(broker: LocalBroker) -> None:
    def attempt(trial: chaos.Trial) -> None:
        try_shop(broker, trial, **{"enable.idempotence": False})

    with pytest.raises(chaos.ChaosError) as found:
        chaos.run(broker, attempt, steps=4, seed=SEED, only=["Fetch", "SIG", AFTER])
    said = str(found.value)
    assert "a sale is lost, or there twice" in said
    assert f"seed={SEED}" in said
    lines = [line for line in said.splitlines() if line.startswith("  ")]
    assert lines == [f"  1. {AFTER}, Produce: 1 call hit"]
    # The line that is printed repeats it.
    with pytest.raises(chaos.ChaosError, match="there twice"):
        chaos.run(broker, attempt, plan=[f"{AFTER}, Produce"])


def test_an_idempotent_producer_bears_everything(broker: LocalBroker) -> None:
    chaos.run(
        broker,
        lambda trial: try_shop(broker, trial, **{"enable.idempotence": True}),
        steps=4,
        tries=4,
        seed=2,
        hold_seconds=0.3,
    )


class Worker:
    """Handles records; one that `commits_first` forgets those it has taken when it is killed."""

    def __init__(self, broker: LocalBroker, topic: str, group: str, *, commits_first: bool) -> None:
        self.broker, self.topic, self.group = broker, topic, group
        self.commits_first = commits_first
        self.handled: set[bytes] = set()
        self.start()

    def start(self) -> None:
        settings = {"group.id": self.group, "auto.offset.reset": "earliest"}
        more = {"enable.auto.commit": False, "session.timeout.ms": 6_000}
        self.consumer = Consumer({**self.broker.client_settings(), **QUICK, **settings, **more})
        self.consumer.subscribe([self.topic])
        self.taken: list[bytes] = []

    def kill(self) -> None:
        """End without a word of what was taken; its place in the group is free at once."""
        self.consumer.close()

    def takes(self) -> bool:
        """Handle what was taken before; return whether something new is there."""
        self.handled |= {*self.taken}
        if self.taken and not self.commits_first:
            self.consumer.commit(asynchronous=False)
        messages = self.consumer.consume(10, 0.3)
        self.taken = [value for each in messages if (value := each.value()) is not None]
        if self.taken and self.commits_first:
            self.consumer.commit(asynchronous=False)
        return bool(self.taken)


@pytest.mark.parametrize("commits_first", [True, False])
def test_a_worker_that_commits_too_early_is_found(broker: LocalBroker, commits_first: bool) -> None:
    def attempt(trial: chaos.Trial) -> None:
        topic = trial.topic("jobs")
        worker = Worker(broker, topic, trial.name("workers"), commits_first=commits_first)
        trial.program("worker", worker)
        shop = Shop(broker, topic)
        for step in trial:
            shop.sell()
            until(worker.takes, WAIT)
            with step:
                pass
        shop.sell()
        last = b"%d" % (shop.sold - 1)
        until(lambda: not worker.takes() and last in worker.handled, WAIT)
        worker.kill()
        assert len(worker.handled) == shop.sold

    def go() -> None:
        chaos.run(
            broker,
            attempt,
            steps=2,
            tries=2,
            shrinks=4,
            seed=3,
            only=["kill -9, worker"],
            programs=["worker"],
            hold_seconds=0,
        )

    if commits_first:
        with pytest.raises(chaos.ChaosError) as found:
            go()
        assert 'plan=["kill -9, worker"]' in str(found.value)
    else:
        go()


def test_a_broker_that_dies_although_the_fault_spares_it_fails_the_attempt(
    broker: LocalBroker,
) -> None:
    def attempt(trial: chaos.Trial) -> None:
        for step in trial:
            with step:
                broker.kill()

    with pytest.raises(chaos.ChaosError, match="has died by itself"):
        chaos.run(broker, attempt, plan=["answer late, Fetch"], hold_seconds=0)


def test_in_a_cluster_brokers_are_killed_and_parted() -> None:
    with LocalCluster() as cluster:
        plan = ["kill -9, leader", "isolated, follower #3", "SIGSTOP, controller"]
        chaos.run(
            cluster,
            lambda trial: try_shop(cluster, trial, **{"enable.idempotence": True, "acks": "all"}),
            plan=plan,
        )
