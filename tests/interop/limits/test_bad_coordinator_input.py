"""Wrong requests about groups and transactions: Kafka's error, nobody else is hurt.

They are put to one real broker while a polite client beside them commits a record and its group's
offset in one transaction after another. After each it must have gone on, and at the end all that it
was told to be committed is there, in order, and nothing else. The same requests are put to Apache
Kafka, so that the errors are known to be its own.
"""

import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from common.kafka.protocol.messages.join_group import JoinGroupRequestProtocol
from millstream.testing import LocalBroker
from tests.lib.bad_coordinator_input import BAD, Setting
from tests.lib.coordinator_requests import TIMEOUT_MS, TOPIC, Asks
from tests.lib.raw_kafka import RawConnection
from tests.lib.transactional_clients import GIVE_UP_SECONDS, confluent_producer, read
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

POLITE = "polite"
PAUSE_SECONDS = 0.01
"""Between transactions of the polite client: without it they are most of what is done here."""
MEMORY_OF_ONE = 4
"""A request as it arrived, decoded, and what is made of it; in times its size, at most."""
MANY = 1_500
BYTES_OF_EACH = 16_000
"""So much a group of one member and a transactional id together may take, and more than they do."""


def create_topics(bootstrap: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        confluent_kafka.admin.NewTopic(TOPIC, 2, 1),
        confluent_kafka.admin.NewTopic(POLITE, 1, 1),
    ]
    for created in admin.create_topics(topics).values():
        created.result(GIVE_UP_SECONDS)


class Polite:
    """A client that commits a number, and how far its group has come, again and again."""

    def __init__(self, bootstrap: str) -> None:
        self.committed = 0
        self.failure: Exception | None = None
        self._stop = threading.Event()
        self._producer = confluent_producer(bootstrap, POLITE)
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": POLITE, "log_level": 2}
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_SECONDS):
                self._commit(self.committed + 1)
                self.committed += 1
        except confluent_kafka.KafkaException as error:
            self.failure = error

    def _commit(self, number: int) -> None:
        self._producer.begin_transaction()
        self._producer.produce(POLITE, b"%d" % number, partition=0)
        self._producer.send_offsets_to_transaction(
            [confluent_kafka.TopicPartition(POLITE, 0, number)],
            self._consumer.consumer_group_metadata(),
            GIVE_UP_SECONDS,
        )
        self._producer.commit_transaction(GIVE_UP_SECONDS)

    def goes_on(self) -> None:
        """Wait until a transaction that began after now is committed."""
        after = self.committed + 2
        until(lambda: self.committed >= after or self.failure is not None)
        assert self.failure is None

    def stop(self) -> None:
        """Stop; once or again."""
        self._stop.set()
        self._thread.join()

    def offset(self) -> int:
        """Give what the group has committed."""
        (found,) = self._consumer.committed([confluent_kafka.TopicPartition(POLITE, 0)], 30)
        return found.offset


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    # However long all of this takes, the members that are there stay there.
    sessions = {
        "group.consumer.max.session.timeout.ms": TIMEOUT_MS,
        "group.consumer.session.timeout.ms": TIMEOUT_MS,
    }
    with LocalBroker(**sessions) as started:
        create_topics(started.bootstrap_servers)
        yield started


@pytest.fixture(scope="module")
def setting(broker: LocalBroker) -> Iterator[Setting]:
    with RawConnection(broker.bootstrap_servers) as connection:
        yield Setting(connection)


@pytest.fixture(scope="module")
def polite(broker: LocalBroker) -> Iterator[Polite]:
    client = Polite(broker.bootstrap_servers)
    yield client
    client.stop()


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_and_hurts_nobody_else(setting: Setting, polite: Polite, name: str) -> None:
    bad = BAD[name]
    assert ErrorCode(bad.ask(setting)) == bad.code
    polite.goes_on()


def test_what_is_open_and_who_is_a_member_stay_what_they_are(setting: Setting) -> None:
    assert setting.heartbeat(setting.member_id, setting.generation) == 0
    assert setting.commit("classic-group", setting.generation, setting.member_id) == 0
    assert setting.modern(setting.modern_id, 1).error_code == 0
    assert setting.txn_commit(setting.open) == 0
    assert setting.end("open", setting.open, 4, committed=True) == 0


def test_many_groups_and_ids_cost_memory_that_is_bounded(
    broker: LocalBroker, setting: Setting, polite: Polite
) -> None:
    before = resident_bytes(broker)
    for number in range(MANY):
        joined = setting.join(f"many-{number}")
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert setting.join(f"many-{number}", joined.member_id).error_code == 0
        assert setting.init(f"many-{number}", TIMEOUT_MS).error_code == 0
    assert resident_bytes(broker) - before < MANY * BYTES_OF_EACH
    polite.goes_on()


HUGE_BYTES = 104_857_600 - 300  # the largest request there may be, less the rest of it


def names_of_all_topics(asks: Asks) -> int:
    return asks.modern_join(
        member_id="m", group="huge", subscribed_topic_names=["x" * 130] * 780_000
    )


def one_pattern(asks: Asks) -> int:
    return asks.modern_join(
        member_id="m",
        group="huge",
        subscribed_topic_names=None,
        subscribed_topic_regex="a" * HUGE_BYTES,
    )


def metadata_of_a_member(asks: Asks) -> int:
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(HUGE_BYTES))
    return asks.join("huge-classic", protocols=[protocol]).error_code


def assignment_by_a_leader(asks: Asks) -> int:
    """The leader's own group goes on: it is to be assigned anew."""
    member_id = asks.join("huge-assigned").member_id
    joined = asks.join("huge-assigned", member_id)
    return asks.sync("huge-assigned", member_id, joined.generation_id, bytes(HUGE_BYTES))


@pytest.mark.parametrize(
    ("subscribe", "code"),
    [
        (
            names_of_all_topics,
            None,
        ),  # no list may have so many (common/kafka/protocol/array_limits.py)
        (one_pattern, None),  # as Kafka: no string is so long, and the connection is closed
        (metadata_of_a_member, ErrorCode.UNKNOWN_SERVER_ERROR),
        (assignment_by_a_leader, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_100_mib_are_refused_and_their_memory_is_given_back(
    broker: LocalBroker, polite: Polite, subscribe: Callable[[Asks], int], code: ErrorCode | None
) -> None:
    before = resident_bytes(broker)
    with RawConnection(broker.bootstrap_servers, GIVE_UP_SECONDS) as connection:
        if code is None:
            with pytest.raises(ConnectionError):
                subscribe(Asks(connection))
        else:
            assert subscribe(Asks(connection)) == code
    assert resident_bytes(broker, "VmHWM") - before < MEMORY_OF_ONE * HUGE_BYTES
    until(lambda: resident_bytes(broker) - before < HUGE_BYTES // 2)
    polite.goes_on()


def refuses_two_phase_commit(bootstrap: str) -> bool:
    """Ask for it as InitProducerId v6 does (KIP-939), which is not stable in Kafka 4.3.

    Neither broker offers that version; who asks all the same loses the connection.
    """
    with RawConnection(bootstrap) as connection:
        who = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        offered = connection.ask(ApiKey.API_VERSIONS, 3, who)
        assert isinstance(offered, ApiVersionsResponse)
        (range_,) = [one for one in offered.api_keys if one.api_key == ApiKey.INIT_PRODUCER_ID]
        header = struct.pack(">hhihB", ApiKey.INIT_PRODUCER_ID, 6, 1, -1, 0)
        enable_2pc, keep_prepared = b"\1", b"\0"
        producer = struct.pack(">iqh", TIMEOUT_MS, -1, -1)
        connection.send_frame(header + b"\4two" + producer + enable_2pc + keep_prepared + b"\0")
        return range_.max_version == 5 and connection.is_closed_by_peer()


def test_two_phase_commit_is_not_served(broker: LocalBroker, polite: Polite) -> None:
    assert refuses_two_phase_commit(broker.bootstrap_servers)
    polite.goes_on()


def test_the_polite_client_has_lost_nothing(broker: LocalBroker, polite: Polite) -> None:
    polite.goes_on()
    polite.stop()
    assert polite.offset() == polite.committed
    found = read(broker.bootstrap_servers, POLITE, polite.committed, "read_committed")
    assert found == [b"%d" % number for number in range(1, polite.committed + 1)]


def test_apache_kafka_refuses_the_same_with_the_same_errors(apache_kafka: str) -> None:
    create_topics(apache_kafka)
    with RawConnection(apache_kafka, GIVE_UP_SECONDS) as connection:
        setting = Setting(connection)
        answers = {name: ErrorCode(bad.ask(setting)) for name, bad in BAD.items()}
    assert refuses_two_phase_commit(apache_kafka)
    assert answers == {name: bad.code for name, bad in BAD.items()}


def resident_bytes(broker: LocalBroker, which: str = "VmRSS") -> int:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return 1024 * int(status.partition(f"{which}:")[2].split()[0])
