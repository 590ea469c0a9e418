"""Programs of operators work with the rights that `rights.yaml` lists, and need each of them."""

from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from backup.command import backup, restore
from common.kafka.admin.quotas import alter_quotas
from common.kafka.admin.topics import delete_topics
from common.kafka.rights import programs
from tests.interop.lag.test_lag import numbers, served
from tests.lib.secured_broker import SecuredBroker, unneeded
from tests.lib.stock_clients import commit_offsets
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

OPERATORS = ("lag", "backup", "restore")
WITH_MORE_BROKERS = {"lag": ["ALTER on topic millstream-probe", "ALTER on cluster kafka-cluster"]}
"""The rights for the probe's partitions, which follow the brokers: there is only one here."""
PROBE = "kminion_end_to_end_"


@pytest.fixture(scope="module")
def broker() -> Iterator[SecuredBroker]:
    """A broker with a topic, a group, a quota, and each operator's rights."""
    with SecuredBroker(OPERATORS) as running:
        for user in OPERATORS:
            running.allow(user, programs()[user])
        running.broker.create_topic("orders", 1, settings={"retention.ms": "-1"})
        producer = confluent_kafka.Producer(running.broker.client_settings("confluent-kafka"))
        for number in range(10):
            producer.produce("orders", f"{number}")
        producer.flush()
        settings = running.broker.client_settings("confluent-kafka")
        commit_offsets(settings, "billing", {("orders", 0): 4})
        with running.admin() as admin:
            alter_quotas(admin, {"user": None}, {"producer_byte_rate": 1e6})
        yield running


@pytest.fixture(scope="module")
def used(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> SecuredBroker:
    """The broker after all of them have done their work."""
    folder = tmp_path_factory.mktemp("operators") / "monday"

    def run(command: Callable[[list[str]], int], user: str, *arguments: str) -> int:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        return command([*at, "--command-config", broker.client_file(user), *arguments])

    watch_lag(broker)
    assert run(backup, "backup", str(folder)) == 0
    with broker.admin() as admin:
        delete_topics(admin, ["orders"])
    assert run(restore, "restore", "--topics", "orders", str(folder)) == 0
    with broker.admin() as admin:
        delete_topics(admin, ["orders", "millstream-probe"])
    assert run(restore, "restore", str(folder)) == 0
    return broker


def watch_lag(broker: SecuredBroker) -> None:
    """Run the lag monitor with the probe; once more, so that it deletes the group before."""
    for _ in range(2):
        with served(broker, "--command-config", broker.client_file("lag"), "--probe") as url:
            until(lambda url=url: has_all(url))


def has_all(url: str) -> bool:
    found = numbers(url)
    groups = {labels["consumergroup"] for labels, _ in found.get("kafka_consumergroup_lag", [])}
    commits = found.get(f"{PROBE}offset_commits_total", [({}, 0.0)])
    return "billing" in groups and commits[0][1] > 0


@pytest.mark.parametrize("program", OPERATORS)
def test_a_program_needs_each_of_its_rights(used: SecuredBroker, program: str) -> None:
    decided = [each for each in used.decisions() if each.user == program]
    assert [each for each in decided if not each.is_allowed] == []
    found = [str(each) for each in unneeded(decided, programs()[program])]
    assert found == WITH_MORE_BROKERS.get(program, [])
