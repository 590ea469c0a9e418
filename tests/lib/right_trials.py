"""Takes rights away from programs, one at a time, and looks whether they fail.

A trial takes one right from a program, starts the program, and waits until the broker has denied it
what the right is about, and the program has said so or failed. So that there is something to do,
services and streams begin again: their group is deleted, and they read every record once more,
orders as well as what nobody can read.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired

from confluent_kafka import KafkaException

from millrace.security.rights import Right, programs
from tests.lib.pipeline_processes import Program
from tests.lib.secured_broker import SecuredBroker
from tests.lib.waiting import until

SAID = re.compile(r"authoriz|denied", re.IGNORECASE)
PATIENCE_SECONDS = 40.0
Start = Callable[[Path], Program]
"""Starts a program that logs to a file."""


class Trials:
    """Owns the trials on one cluster."""

    def __init__(self, broker: SecuredBroker, folder: Path) -> None:
        self._broker = broker
        self._folder = folder

    def find_unneeded(
        self,
        program: str,
        rights: Sequence[Right],
        start: Start,
        act: Callable[[], object] | None = None,
    ) -> list[str]:
        """Return what happened, for each right without which the program does not fail.

        `act` is what others do while it runs; it may fail.
        """
        return [
            text
            for right in sorted(rights, key=_order)
            if (text := self._outcome(program, right, start, act))
        ]

    def _outcome(
        self, program: str, right: Right, start: Start, act: Callable[[], object] | None
    ) -> str:
        try:
            return self._try_without(program, right, start, act)
        except TimeoutExpired:
            return f"{program} does not end without {right}"

    def _try_without(
        self, program: str, right: Right, start: Start, act: Callable[[], object] | None
    ) -> str:
        self._delete_topics(_gone(program, right))
        self._delete_groups(program)
        mark = len(self._broker.broker.log())
        log = self._folder / f"{program}.trial.log"
        log.write_text("")
        with self._without(program, right), _running(start, log) as running:

            def fails() -> bool:
                if act is not None:
                    with suppress(OSError, AssertionError, ValueError):
                        act()
                if running.poll() not in (None, 0):
                    # It may have asked for a list, in which nobody is told what is left out.
                    return True
                is_said = SAID.search(log.read_text()) is not None
                return is_said and self._is_denied(program, right, mark)

            try:
                until(fails, PATIENCE_SECONDS)
            except AssertionError:
                denied = self._is_denied(program, right, mark)
                return (
                    f"{program} does not fail without {right} (denied={denied}, "
                    f"status={running.poll()}):\n{log.read_text()[-2_000:]}"
                )
        return ""

    def _is_denied(self, program: str, right: Right, mark: int) -> bool:
        # An idempotent producer needs WRITE on some topic before it names one.
        implied = "IDEMPOTENT_WRITE" if right.operation == "WRITE" else ""
        return any(
            not each.is_allowed
            and each.user == program
            and (right.covers(each.kind, each.name) or each.operation == implied)
            for each in self._broker.decisions(mark)
        )

    def _delete_groups(self, program: str) -> None:
        for right in programs()[program]:
            if right.kind == "group" and right.operation == "READ":
                name = right.name
                until(lambda name=name: self._is_deleted(name), shown=lambda name=name: name)

    def _is_deleted(self, group: str) -> bool:
        """Delete a group, unless it has members still."""
        try:
            self._broker.admin.delete_consumer_groups([group])[group].result(10)
        except KafkaException as error:
            name: str = error.args[0].name()
            return name == "GROUP_ID_NOT_FOUND"
        return True

    def _delete_topics(self, names: set[str]) -> None:
        there = sorted(set(self._broker.admin.list_topics(timeout=20).topics) & names)
        if there:
            for deleted in self._broker.admin.delete_topics(there).values():
                deleted.result(20)

    @contextmanager
    def _without(self, program: str, right: Right) -> Iterator[None]:
        self._broker.forbid(program, right)
        try:
            yield
        finally:
            self._broker.allow(program, [right])


@contextmanager
def _running(start: Start, log: Path) -> Iterator[Program]:
    started = start(log)
    try:
        yield started
    finally:
        # In a clean end it leaves its group.
        try:
            started.end()
        except TimeoutExpired:
            started.end(kill=True)
            raise


def _order(right: Right) -> int:
    """State and poison that are read back must be there, until what writes them is tried."""
    if right.operation == "READ":
        return 0
    return 1 if right.name.endswith(".dead-letter") else 2


def _gone(program: str, right: Right) -> set[str]:
    """Return the topics to delete before a trial, so that a program does its work again."""
    match _order(right), right.operation:
        case _, "CREATE":
            return {right.name}
        case 2, _:
            return _own_topics(program)
    return set()


def _own_topics(program: str) -> set[str]:
    """Return the topics that nobody but a program creates, reads or writes."""
    own = {each.name for each in programs()[program] if each.operation == "CREATE"}
    others = {
        each.name for name, rights in programs().items() if name != program for each in rights
    }
    return own - others
