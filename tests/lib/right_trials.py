"""Takes rights away from programs, one at a time, and looks whether they fail.

A trial takes one right from a program, starts the program, and waits until the broker has denied it
what the right is about, and the program has said so or failed. So that there is something to do,
services and streams begin again: their group is deleted, and they read every record once more,
orders as well as what nobody can read.

LEAST_RIGHTS_OF names the programs from which each right is taken, which takes minutes each (`make
least-rights`), and LEAST_RIGHTS_ABOUT is a pattern of those rights. From others one right is taken,
which LEAST_RIGHTS_SEED chooses.
"""

import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired

from common.kafka.admin.groups import delete_groups
from common.kafka.admin.topics import delete_topics, list_topics
from common.kafka.errors import ErrorCode
from common.kafka.rights import EVERY, Right, programs
from tests.lib.pipeline_processes import Program
from tests.lib.secured_broker import SecuredBroker
from tests.lib.waiting import until

SAID = re.compile(r"authoriz|denied", re.IGNORECASE)
NOT_LISTED = re.compile(r"shows no topic .* not authorized")
"""What a program says about a list of topics: no broker says what it leaves out of a list."""
EVERY_TOPIC = Right("topic", EVERY, False, "READ")
PATIENCE_SECONDS = 40.0
Start = Callable[[Path], Program]
"""Starts a program that logs to a file."""
_SEED = os.environ.get("LEAST_RIGHTS_SEED", "1")
_ABOUT = os.environ.get("LEAST_RIGHTS_ABOUT", "")
_TRIED_WHOLE = os.environ.get("LEAST_RIGHTS_OF", "").split(",")


def tried(program: str) -> list[Right]:
    """Return the rights to take from a program."""
    rights = programs()[program]
    if program in _TRIED_WHOLE or _TRIED_WHOLE == ["all"]:
        return [right for right in rights if re.search(_ABOUT, str(right))]
    if program == "streams":  # Faust waited in silence without its group.
        return [right for right in rights if right.kind == "group"]
    return random.Random(f"{_SEED}-{program}").sample(rights, 1)


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
        self._delete_topics(_of_gone_topics(program, right))
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
                said = log.read_text()
                if right == EVERY_TOPIC and NOT_LISTED.search(said):
                    return True
                return bool(SAID.search(said)) and self._is_denied(program, right, mark)

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
        with self._broker.admin() as admin:
            refused = delete_groups(admin, [group])[group]
        return refused is None or refused.code == ErrorCode.GROUP_ID_NOT_FOUND

    def _delete_topics(self, rights: Sequence[Right]) -> None:
        """Delete the topics that rights are about."""
        with self._broker.admin() as admin:
            names = [topic.name for topic in list_topics(admin)]
            there = [name for name in names if any(each.covers("topic", name) for each in rights)]
            delete_topics(admin, there)

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


def _of_gone_topics(program: str, right: Right) -> list[Right]:
    """Return rights whose topics are deleted before a trial, so that a program works again."""
    match _order(right), right.operation:
        case _, "CREATE":
            return [right]
        case 2, _:
            return _of_own_topics(program)
    return []


def _of_own_topics(program: str) -> list[Right]:
    """Return rights on the topics that nobody but a program creates, reads or writes."""
    others = {
        each.name for name, rights in programs().items() if name != program for each in rights
    }
    return [
        each
        for each in programs()[program]
        if each.operation == "CREATE" and each.name not in others
    ]
