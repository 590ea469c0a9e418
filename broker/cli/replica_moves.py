"""Moves of replicas between the log directories of their brokers, from a reassignment file."""

import time
from collections.abc import Mapping

from broker.cli.arguments import ToolFailed
from broker.server.clock import SystemClock
from common.kafka.admin.client import AdminClient
from common.kafka.admin.log_directories import (
    Replica,
    ReplicaPlace,
    alter_replica_places,
    replica_places,
)
from common.kafka.errors import ErrorCode

RETRY_MS = 100


def start_moves(client: AdminClient, targets: Mapping[Replica, str], timeout_ms: int) -> None:
    """Start moves, and print each; raise ToolFailed if one has not started before the timeout.

    A request to a broker without the replica is retried: a reassignment may create it.
    """
    clock = SystemClock()
    deadline_ms = clock.now_ms() + timeout_ms
    pending = dict(targets)
    while pending:
        outcomes = alter_replica_places(client, pending)
        for replica, error in sorted(outcomes.items()):
            if error is None:
                print(
                    f"Successfully started moving log directory to {pending[replica]} for replica "
                    f"{replica.topic}-{replica.partition} with broker {replica.broker_id} "
                )
                del pending[replica]
            elif error.code != ErrorCode.REPLICA_NOT_AVAILABLE:
                raise ToolFailed(f"Error: Failed to alter dir for {replica}: {error}")
        if pending and clock.now_ms() >= deadline_ms:
            plural = "" if len(pending) == 1 else "s"
            listed = ",".join(map(str, sorted(pending)))
            raise ToolFailed(
                f"Timed out before log directory move{plural} could be started for: {listed}"
            )
        if pending:
            time.sleep(RETRY_MS / 1000)


def verify_moves(client: AdminClient, targets: Mapping[Replica, str]) -> tuple[list[str], bool]:
    """Return the lines about the state of the moves, and True if none is ongoing."""
    places = replica_places(client, targets)
    lines, is_done = [], True
    for replica, target in sorted(targets.items()):
        place = places[replica]
        lines.append(move_text(replica, target, place))
        is_missing = place is None or place.current is None
        is_done = is_done and not is_missing and place is not None and place.future is None
    return lines, is_done


def cancel_moves(client: AdminClient, targets: Mapping[Replica, str], timeout_ms: int) -> None:
    """Cancel moves: the target of a replica becomes its current directory."""
    back = {
        replica: place.current
        for replica, place in replica_places(client, targets).items()
        if place is not None and place.current is not None and place.future is not None
    }
    if back:
        start_moves(client, back, timeout_ms)
    else:
        print("None of the specified partition moves are active.")


def move_text(replica: Replica, target: str, place: ReplicaPlace | None) -> str:
    """Return the line about one move."""
    name = f"{replica.topic}-{replica.partition}"
    where = f"Partition {name} on broker {replica.broker_id} is"
    if place is None:
        return (
            f"Partition {name} cannot be found in any live log directory on broker "
            f"{replica.broker_id}."
        )
    if place.current is None:
        return (
            f"Partition {name} is not found in any live log dir on broker {replica.broker_id}. "
            "There is likely an offline log directory on the broker."
        )
    if place.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    if place.future is not None:
        return f"{where} being moved to log dir {place.future} instead of {target}."
    if place.current != target:
        return f"{where} not being moved from log dir {place.current} to {target}."
    return f"Reassignment of replica {replica} completed successfully."
