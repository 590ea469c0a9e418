"""Who runs what: the decision of the group's leader, round by round (KIP-415). Pure.

A round knows what is configured and what every member runs. Invariants:
- Nothing is given to a member that another one says it runs: it is taken from that one first, and
  given away in a round in which nobody has it.
- What a member runs stays with it, unless it is configured no longer, two members have it, or the
  member has more than its part: then just what is too much is taken.
- What a member ran that is gone waits for `max_delay_ms`, so that a restart moves nothing. When as
  many empty workers have joined as are gone they get it at once, as they are most likely the same
  ones. (Apache Kafka's leader has them wait for the end of the delay too.)
- Everything else that nobody runs is given at once to those with the least.

The leader remembers what it gave away in the last round; a new leader does not know what is lost,
and gives it away at once.
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
    """What is decided: by member what it is to start and to stop, and when to look again."""

    assigned: Mapping[str, Share]
    revoked: Mapping[str, Share]
    delay_ms: int


@dataclass(slots=True)
class Assignor:
    """What a leader remembers from one round to the next."""

    max_delay_ms: int
    _previous: Share = field(default_factory=Share)
    """What was given to somebody in the last round, what is lost included."""
    _previous_members: frozenset[str] = frozenset()
    _due_ms: int | None = None
    """When what is lost is given away."""
    _put_off_ms: int | None = None
    """When a revocation that was put off may be done."""
    _gone: int = 0
    """How many members are gone whose work waits."""
    _came: set[str] = field(default_factory=set)
    """Who has joined with nothing since they are gone."""
    _revocations: int = 0
    """How many rounds in a row have taken something away to balance."""

    def forget(self) -> None:
        """Begin anew: somebody else has led in the meantime."""
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
        # What was just taken away counts as new in the next round.
        self._previous = after
        self._previous_members = frozenset(members)
        due_ms = self._put_off_ms if self._due_ms is None else self._due_ms
        delay_ms = 0 if due_ms is None else max(1, due_ms - now_ms)
        return Round(given, revoked, delay_ms)

    # --- what is lost ---

    def _waiting(self, lost: Share, members: Mapping[str, Share], now_ms: int) -> Share:
        """Give what of the lost is kept for those that are gone."""
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
        # What a second one ran that is gone meanwhile waits only as long as that of the first.
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
        """Give what is taken from members to balance. Twice in a row it is put off for a while."""
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
    """Give what is above each member's part; the members with the most may have one more."""
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
    """Deal to whoever has the least, one at a time."""
    dealt: dict[str, list[Any]] = {name: [] for name in loads}
    for each in free:
        name = min(loads, key=lambda one: (loads[one] + len(dealt[one]), one))
        dealt[name].append(each)
    return dealt
