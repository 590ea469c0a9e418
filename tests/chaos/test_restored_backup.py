"""A backup is taken under load and restored elsewhere; chaos's checker judges what is there."""

import random
from pathlib import Path

import pytest

from backup.command import backup, restore
from millstream.testing import LocalBroker
from tests.chaos.checker import check
from tests.chaos.clients import ConfluentClient, KafkaPythonClient
from tests.chaos.cluster_view import ClusterView
from tests.chaos.history import Kind, Operation, Outcome
from tests.chaos.load import Pulse, Worker
from tests.chaos.recorder import Outcomes, Recorder
from tests.lib.waiting import until

TOPIC, PARTITIONS, SEED = "chaos", 4, 7
FIRST_PULSE, READER = 100, 200


def sends_as_of(
    operations: list[Operation], began_ms: float, ended_ms: float
) -> tuple[list[Operation], int]:
    """Return the sends as a backup between two times has to keep them, and how many it must have.

    What was acknowledged before is there, and what was sent later is not; of the rest nobody knows.
    """
    kept = []
    for operation in operations:
        if operation.kind is not Kind.SEND:
            continue
        outcome = operation.outcome
        if operation.start_ms > ended_ms:
            outcome = Outcome.FAIL
        elif outcome is Outcome.OK and operation.end_ms > began_ms:
            outcome = Outcome.INFO
        kept.append(operation._replace(outcome=outcome))
    return kept, sum(each.outcome is Outcome.OK for each in kept)


def taken_under_load(broker: LocalBroker, recorder: Recorder, folder: Path) -> list[Operation]:
    """Take a backup while clients send; return what it has to keep."""
    view = ClusterView(broker.bootstrap_servers, TOPIC, PARTITIONS)
    view.create(1)
    pulse = Pulse(broker.bootstrap_servers, view.keys, recorder, FIRST_PULSE)
    workers = [
        Worker(number, lambda make=make: make(broker.bootstrap_servers), view.keys, recorder,
               random.Random(SEED + number))
        for number, make in enumerate((ConfluentClient, KafkaPythonClient), 1)
    ]  # fmt: skip
    threads = [pulse, *workers]
    for thread in threads:
        thread.start()

    def goes_on() -> None:
        since_ms = recorder.now_ms()
        until(lambda: all(recorder.is_acknowledged_since(key, since_ms) for key in view.keys))

    try:
        for _ in range(5):
            goes_on()
        began_ms = recorder.now_ms()
        assert backup(["--bootstrap-server", broker.bootstrap_servers, str(folder)]) == 0
        ended_ms = recorder.now_ms()
        goes_on()
    finally:
        for worker in workers:
            worker.stop()
        pulse.stop()
        for worker in workers:
            worker.join()
    assert [worker.failure for worker in workers] == [None, None]
    kept, known = sends_as_of(recorder.operations(), began_ms, ended_ms)
    assert known > 5 * PARTITIONS
    return kept


def everything_read(broker: LocalBroker, recorder: Recorder) -> list[Operation]:
    """Read all partitions from start to end; return the operations."""
    view = ClusterView(broker.bootstrap_servers, TOPIC, PARTITIONS)
    before = len(recorder.operations())
    client = ConfluentClient(broker.bootstrap_servers)
    client.assign(dict.fromkeys(view.keys))
    recorder.add(READER, Kind.ASSIGN, recorder.now_ms(), Outcomes(Outcome.OK), view.keys)
    left = view.end_offsets()

    def is_at_the_end() -> bool:
        start_ms, done = recorder.now_ms(), client.poll()
        recorder.add(READER, Kind.POLL, start_ms, done)
        for found in done.reads:
            if left.get(found.key, 0) <= found.offset + 1:
                left.pop(found.key, None)
        return not left

    until(is_at_the_end)
    client.close()
    return recorder.operations()[before:]


@pytest.mark.slow
def test_what_was_acknowledged_before_a_backup_is_restored_once_and_in_order(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path / "history.jsonl")
    with LocalBroker() as source:
        kept = taken_under_load(source, recorder, tmp_path / "backup")
    with LocalBroker() as target:
        arguments = ["--bootstrap-server", target.bootstrap_servers]
        assert restore([*arguments, str(tmp_path / "backup")]) == 0
        reads = everything_read(target, recorder)
    recorder.close()
    assert check([*kept, *reads]) == []
    # The judge is awake: without one of the reads something acknowledged is missing.
    (missing, *_) = (each for each in reads if each.reads)
    assert check([*kept, *(each for each in reads if each is not missing)]) != []
