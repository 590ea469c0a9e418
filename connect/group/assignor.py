"""The incremental cooperative assignor of the group's leader, round by round (KIP-415). Pure.

The input of a round is the configured connectors and tasks, and those that each member runs.
Invariants:
- A connector or task that a member runs is not assigned to another member. It is revoked first, and
  assigned in a later round, in which no member runs it.
- A member keeps what it runs, unless the connector or task is not configured, two members run it,
  or the member has more than its share. In the last case only the surplus is revoked.
- The work of a member that left, the *lost* work, waits for `max_delay_ms`, so that a restart moves
  nothing. If as many empty members have joined as have left, it is assigned at once, since they are
  most likely the same workers. (Apache Kafka's leader waits for the delay in this case, too.)
- All other work that no member runs is assigned at once, to the members with the least work.

The leader remembers the assignment of the last round. A new leader cannot know which work is lost,
and assigns it at once.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from connect.group.protocol import Share, union

_BACKOFF_FACTOR: Final = 40
_BACKOFF_LIMIT: Final = 6

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Round:
    """The decision: what each member must start and stop, and the delay until the next round."""

    assigned: Mapping[str, Share]
    revoked: Mapping[str, Share]
    delay_ms: int


@dataclass(slots=True)
class Assignor:
    """The leader's state between rounds."""

    max_delay_ms: int
    _previous: Share = field(default_factory=Share)
    """All work that was assigned after the last round, including lost work."""
    _previous_members: frozenset[str] = frozenset()
    _due_ms: int | None = None
    """The time at which lost work is assigned; None when there is none."""
    _put_off_ms: int | None = None
    """The time from which a delayed revocation is allowed."""
    _gone: int = 0
    """The number of members that left and whose work waits."""
    _came: set[str] = field(default_factory=set)
    """The members that have joined without work since then."""
    _revocations: int = 0
    """The number of rounds in a row that revoked work to balance."""

    def forget(self) -> None:
        """Reset the state: another member has been the leader since the last round."""
        fresh = Assignor(self.max_delay_ms)
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))

    def assign(self, configured: Share, members: Mapping[str, Share], now_ms: int) -> Round:
        """Decide a round."""
        running = union(members.values())
        wrong = (running - configured) | _duplicated(members.values())
        revoked = {name: share & wrong for name, share in members.items()}
        kept = {name: share - wrong for name, share in members.items()}
        unowned = configured - running
        lost = self._waiting(unowned & self._previous, members, now_ms)
        if self._due_ms is None:
            for name, share in self._too_much(configured, kept, now_ms).items():
                revoked[name] |= share
                kept[name] -= share
        given = _given(unowned - lost, kept)
        after = union([*kept.values(), *given.values(), lost])
        # Work that this round revokes is not lost: the next round assigns it at once.
        self._previous = after
        self._previous_members = frozenset(members)
        due_ms = self._put_off_ms if self._due_ms is None else self._due_ms
        delay_ms = 0 if due_ms is None else max(1, due_ms - now_ms)
        return Round(given, revoked, delay_ms)

    # --- lost work ---

    def _waiting(self, lost: Share, members: Mapping[str, Share], now_ms: int) -> Share:
        """Return the lost work that is reserved for members that left."""
        if not lost:
            self._settle()
            return Share()
        is_new = not self._gone
        gone = self._previous_members - members.keys()
        self._gone += len(gone)
        self._came &= members.keys()
        self._came |= {
            name
            for name, share in members.items()
            if not share and name not in self._previous_members
        }
        # If another member leaves meanwhile, its work waits only until the first delay is over.
        if is_new or self._due_ms is None:
            self._due_ms = now_ms + self.max_delay_ms
        if now_ms >= self._due_ms or len(self._came) >= self._gone:
            self._settle()
            return Share()
        return lost

    def _settle(self) -> None:
        self._due_ms = None
        self._gone = 0
        self._came.clear()

    # --- balance ---

    def _too_much(
        self, configured: Share, kept: Mapping[str, Share], now_ms: int
    ) -> dict[str, Share]:
        """Return the work to revoke from each member to balance.

        After a round that revoked, the next revocation is delayed, longer each time.
        """
        taken = _excess(configured, kept)
        if not taken:
            self._revocations, self._put_off_ms = 0, None
            return {}
        if self._put_off_ms is None and self._revocations:
            exponent = min(self._revocations, _BACKOFF_LIMIT)
            self._put_off_ms = now_ms + min(self.max_delay_ms, _BACKOFF_FACTOR**exponent)
        if self._put_off_ms is not None and now_ms < self._put_off_ms:
            return {}
        self._put_off_ms = None
        self._revocations += 1
        return taken


def _duplicated(shares: Iterable[Share]) -> Share:
    seen, twice = Share(), Share()
    for share in shares:
        twice |= seen & share
        seen |= share
    return twice


def _excess(configured: Share, kept: Mapping[str, Share]) -> dict[str, Share]:
    connectors = _surplus(
        len(configured.connectors), {name: sorted(each.connectors) for name, each in kept.items()}
    )
    tasks = _surplus(
        len(configured.tasks), {name: sorted(each.tasks) for name, each in kept.items()}
    )
    names = connectors.keys() | tasks.keys()
    return {
        name: Share(frozenset(connectors.get(name, ())), frozenset(tasks.get(name, ())))
        for name in sorted(names)
    }


def _surplus(total: int, owned: Mapping[str, Sequence[T]]) -> dict[str, Sequence[T]]:
    """Return each member's surplus; the members with the most work may keep one more."""
    least, extras = divmod(total, len(owned))
    surplus: dict[str, Sequence[T]] = {}
    for name in sorted(owned, key=lambda each: (-len(owned[each]), each)):
        part = least
        if len(owned[name]) > least and extras:
            part, extras = least + 1, extras - 1
        if len(owned[name]) > part:
            surplus[name] = owned[name][part:]
    return surplus


def _given(free: Share, kept: Mapping[str, Share]) -> dict[str, Share]:
    connectors = _dealt(
        sorted(free.connectors), {name: len(each.connectors) for name, each in kept.items()}
    )
    tasks = _dealt(sorted(free.tasks), {name: len(each.tasks) for name, each in kept.items()})
    return {name: Share(frozenset(connectors[name]), frozenset(tasks[name])) for name in kept}


def _dealt(free: Sequence[Any], loads: Mapping[str, int]) -> dict[str, list[Any]]:
    """Assign one at a time, each to the member with the least work."""
    dealt: dict[str, list[Any]] = {name: [] for name in loads}
    for each in free:
        name = min(loads, key=lambda one: (loads[one] + len(dealt[one]), one))
        dealt[name].append(each)
    return dealt
