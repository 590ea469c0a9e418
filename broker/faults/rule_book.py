"""The rules that are armed, and what each has hit."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from broker.faults.rule import Call, FaultKind, Rule
from broker.faults.triggers import NewRandom, WithProbability, acts

MAX_RULES: Final = 1_000


class Armed:
    """One armed rule."""

    __slots__ = ("_draw", "calls", "hits", "rule", "rule_id")

    def __init__(self, rule_id: int, rule: Rule, draw: Callable[[], float]) -> None:
        self.rule_id = rule_id
        self.rule = rule
        self.calls = 0
        """The calls that it matched."""
        self.hits = 0
        """The calls that it acted on."""
        self._draw = draw

    def act(self) -> bool:
        """Count a call that it matches, and return whether it acts on it."""
        acted = acts(self.rule.when, self.calls, self.hits, self._draw)
        self.calls += 1
        self.hits += acted
        return acted

    def as_json(self) -> dict[str, Any]:
        """Return the rule with its counts."""
        return {"id": self.rule_id, **self.rule.as_json(), "calls": self.calls, "hits": self.hits}


class RuleBook:
    """Owns the rules. A call meets them in the order in which they were armed."""

    def __init__(self, new_random: NewRandom) -> None:
        self._new_random = new_random
        self._armed: dict[int, Armed] = {}
        self._last_id = 0

    def __iter__(self) -> Iterator[Armed]:
        return iter(list(self._armed.values()))

    @property
    def is_empty(self) -> bool:
        """True if no rule is armed."""
        return not self._armed

    def arm(self, rule: Rule) -> Armed:
        """Add a rule; raise ValueError if there are MAX_RULES already."""
        if len(self._armed) >= MAX_RULES:
            raise ValueError(f"{MAX_RULES} rules are armed: remove some first")
        self._last_id += 1
        when = rule.when
        seed = when.seed if isinstance(when, WithProbability) else 0
        armed = Armed(self._last_id, rule, self._new_random(seed))
        self._armed[armed.rule_id] = armed
        return armed

    def find(self, rule_id: int) -> Armed | None:
        """Return a rule, None if it is not armed."""
        return self._armed.get(rule_id)

    def disarm(self, rule_id: int) -> Armed | None:
        """Remove a rule and return it, None if it is not armed."""
        return self._armed.pop(rule_id, None)

    def clear(self) -> None:
        """Remove all rules."""
        self._armed.clear()

    def hits_on(self, call: Call) -> list[Armed]:
        """Return the rules that act on a call: delays, and at most one of another kind."""
        hits: list[Armed] = []
        is_decided = False
        for armed in self._armed.values():
            rule = armed.rule
            is_delay = rule.kind is FaultKind.DELAY
            if rule.kind is FaultKind.DISK or (is_decided and not is_delay):
                continue
            if rule.matches(call) and armed.act():
                hits.append(armed)
                is_decided = is_decided or not is_delay
        return hits

    def hits_on_disk(self, topic: str, partition: int) -> Armed | None:
        """Return the rule that acts on an access to the files of a partition."""
        for armed in self._armed.values():
            rule = armed.rule
            if (
                rule.kind is FaultKind.DISK
                and rule.topic in (None, topic)
                and rule.partition in (None, partition)
                and armed.act()
            ):
                return armed
        return None
