"""The directory of each replica is reported to the controller, until the metadata has it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from broker.model import TopicPartition
from broker.server.cluster.directory_assignments import MAX_PER_TURN, DirectoryAssignments
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from tests.lib.controlled_cluster import ControlledCluster

FIRST, SECOND = b"a" * 16, b"b" * 16


def directory(directory_id: bytes, *, is_offline: bool = False) -> Any:
    return SimpleNamespace(directory_id=directory_id, is_offline=is_offline)


class Played:
    """Broker 2 with real metadata; its directories and the way to the controller are played."""

    def __init__(self, *directories: Any) -> None:
        self.cluster = ControlledCluster(1)
        ids = [each.directory_id for each in directories]
        self.cluster.start(2, log_dirs=ids)
        self.places: dict[TopicPartition, Any] = {}
        self.asked: list[tuple[Any, Callable[[Message], None]]] = []
        self.due: list[Callable[[], None]] = []
        self.soon: list[Callable[[], None]] = []
        loop: Any = SimpleNamespace(
            call_later=lambda seconds, call: self.due.append(call), call_soon=self.soon.append
        )
        metadata: Any = SimpleNamespace(image=self.cluster.image)
        log_directories: Any = SimpleNamespace(
            directories=list(directories), directory_of=self.places.get
        )
        self.assignments = DirectoryAssignments(
            loop,
            2,
            metadata,
            log_directories,
            self._ask,
            broker_epoch=lambda: self.cluster.broker(2).epoch,
        )

    def _ask(
        self,
        request: Message,
        api_version: int,
        on_response: Callable[[Message], None],
        *,
        timeout_ms: int,
    ) -> None:
        self.asked.append((request, on_response))

    def answer(self) -> None:
        """Let the controller decide, and tell the broker what has changed before its answer."""
        request, on_response = self.asked.pop(0)
        response = self.cluster.ask(request)
        self.assignments.apply(self.cluster.take_delta())
        on_response(response)


def test_a_new_log_is_assigned_to_its_directory_once() -> None:
    first, second = directory(FIRST), directory(SECOND)
    played = Played(first, second)
    played.cluster.create("orders", [2, 1], [1, 2])
    played.places[TopicPartition("orders", 0)] = second
    played.assignments.apply(played.cluster.take_delta())
    played.answer()
    assert played.cluster.partition("orders").directories[0] == SECOND
    assert played.asked == []
    played.assignments.look_at_all()
    assert played.asked == []


def test_a_moved_log_is_assigned_anew() -> None:
    first, second = directory(FIRST), directory(SECOND)
    played = Played(first, second)
    played.cluster.create("orders", [2])
    played.places[TopicPartition("orders", 0)] = first
    played.assignments.look_at_all()
    played.answer()
    played.places[TopicPartition("orders", 0)] = second
    played.assignments.look_at([TopicPartition("orders", 0)])
    played.answer()
    assert played.cluster.partition("orders").directories == (SECOND,)


def test_an_empty_disk_gets_the_replicas_of_the_one_before() -> None:
    played = Played(directory(FIRST))
    played.cluster.create("orders", [1, 2])
    played.cluster.lose(2)
    played.cluster.start(2, incarnation=2, log_dirs=[SECOND])
    played.assignments._log_directories.directories[0].directory_id = SECOND
    played.assignments.look_at_all()
    played.answer()
    assert played.cluster.partition("orders").directories[1] == SECOND


def test_what_was_not_taken_note_of_is_told_again() -> None:
    first = directory(FIRST)
    played = Played(first, directory(SECOND))
    played.cluster.create("orders", [2])
    played.places[TopicPartition("orders", 0)] = first
    played.assignments.look_at_all()
    _, on_response = played.asked.pop()
    on_response(AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assert played.asked == []
    played.due.pop()()
    played.answer()
    assert played.cluster.partition("orders").directories == (FIRST,)


def test_nothing_is_assigned_to_a_directory_that_has_failed() -> None:
    failed = directory(FIRST, is_offline=True)
    played = Played(failed, directory(SECOND))
    played.cluster.create("orders", [2])
    played.places[TopicPartition("orders", 0)] = failed
    played.assignments.look_at_all()
    assert played.asked == []


def test_what_lay_in_a_directory_that_has_failed_is_not_said_to_be_elsewhere() -> None:
    first, second = directory(FIRST), directory(SECOND)
    played = Played(first, second)
    played.cluster.create("orders", [2])
    played.places[TopicPartition("orders", 0)] = first
    played.assignments.look_at_all()
    played.answer()
    first.is_offline = True
    played.places.clear()
    played.assignments.look_at_all()
    assert played.asked == []


def test_of_very_many_replicas_some_are_looked_at_in_a_turn() -> None:
    first, second = directory(FIRST), directory(SECOND)
    played = Played(first, second)
    count = 2 * MAX_PER_TURN + 1
    played.cluster.create("orders", *[[2]] * count)
    played.places[TopicPartition("orders", count - 1)] = second
    played.assignments.apply(played.cluster.take_delta())
    turns = 0
    while not played.asked:
        played.soon.pop(0)()
        turns += 1
    assert turns == 2
    # What changes meanwhile is looked at after that.
    played.answer()
    assert played.cluster.partition("orders", count - 1).directories == (SECOND,)
    assert not played.asked
    assert not played.soon
