"""Faults on demand: what a broker does to the calls of its clients, and when.

    rule = broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders").times(3)
    broker.faults.delay("Fetch", ms=200).always()
    ...
    rule.wait_hit(timeout=5)
    assert rule.hits == 3

A fault is armed by the word that says when it acts: `once()`, `times(n)`, `on_call(n)`, `always()`,
`with_probability(share, seed=n)`. At the end of the `with` block of the broker, a fault that has
hit nothing raises `UnusedFaultError`: a test with such a fault has tested nothing. `allow_unused`
permits it.

These keywords choose the calls; without them, all calls of an API are chosen: `topic`, `partition`,
`client_id`, `principal` ("User:alice"), `transactional_id`, `group`, `version`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypedDict, Unpack

from millstream.testing.broker_control import BrokerControl, ControlError

POLL_SECONDS: Final = 0.01
At = Literal["request", "topic", "partition", "group", "member", "transaction", "entry"]


class UnusedFaultError(AssertionError):
    """A test ended with a fault that hit no call, or that was never armed."""


class Chosen(TypedDict, total=False):
    """The calls that a fault is for."""

    topic: str
    partition: int
    client_id: str
    principal: str
    transactional_id: str
    group: str
    version: int
    allow_unused: bool


class _Place(NamedTuple):
    """One rule at one broker."""

    control: BrokerControl
    run: int
    rule_id: int


class Rule:
    """A fault that is armed, at one broker or at each of a cluster."""

    def __init__(self, what: str, places: Sequence[_Place], *, allow_unused: bool) -> None:
        self._what = what
        self._places = places
        self._allow_unused = allow_unused
        self._final: int | None = None

    def __repr__(self) -> str:
        return f"<Rule {self._what}>"

    @property
    def hits(self) -> int:
        """The calls that it has hit, at all brokers together."""
        if self._final is not None:
            return self._final
        found = [place.control.rule(place.run, place.rule_id) for place in self._places]
        return sum(each["hits"] for each in found if each is not None)

    def wait_hit(self, timeout: float = 10.0, *, count: int = 1) -> None:
        """Wait until it has hit `count` calls; raise TimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (hits := self.hits) < count:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{self._what}: {hits} hits after {timeout} s, not {count}")
            time.sleep(POLL_SECONDS)

    def remove(self) -> None:
        """End it; raise UnusedFaultError if it has hit nothing."""
        unused = self.end()
        if unused is not None:
            raise UnusedFaultError(unused)

    def end(self) -> str | None:
        """End it, and return what is wrong if it has hit nothing."""
        if self._final is None:
            found = [place.control.remove_rule(place.run, place.rule_id) for place in self._places]
            self._final = sum(each["hits"] for each in found if each is not None)
            # What a broker hit that was killed before it could be asked is not known.
            if not self._final and not self._allow_unused and None not in found:
                calls = sum(each["calls"] for each in found if each is not None)
                return f"{self._what} hit nothing: {calls} calls were of this kind"
        return None


class Fault:
    """A fault that is not armed so far."""

    def __init__(
        self, arm: Callable[["Fault", dict[str, Any]], Rule], rule: dict[str, Any]
    ) -> None:
        self._arm = arm
        self.rule = rule
        self.allow_unused = bool(rule.pop("allow_unused", False))

    def __repr__(self) -> str:
        return "".join(f" {name}={value}" for name, value in self.rule.items()).strip()

    def once(self) -> Rule:
        """Hit the next call."""
        return self.times(1)

    def times(self, count: int) -> Rule:
        """Hit the next calls, this many."""
        return self._arm(self, {"times": count})

    def on_call(self, number: int) -> Rule:
        """Hit one call alone: the next one is number 1."""
        return self._arm(self, {"on_call": number})

    def always(self) -> Rule:
        """Hit every call until the fault is removed."""
        return self._arm(self, {"always": True})

    def with_probability(self, share: float, *, seed: int) -> Rule:
        """Hit a share of the calls, from 0 to 1; the same ones for the same seed.

        This is for long runs: for a test that asserts something, count the calls.
        """
        return self._arm(self, {"probability": share, "seed": seed})


class Faults:
    """The faults of a broker, or of each broker of a cluster, where every broker counts alone."""

    def __init__(self, controls: Callable[[], Sequence[BrokerControl]]) -> None:
        self._controls = controls
        self._described: list[Fault] = []
        self._rules: list[Rule] = []

    # --- what the broker answers ---

    def error(
        self,
        api: str,
        error: str,
        *,
        at: At | None = None,
        after: bool = False,
        **chosen: Unpack[Chosen],
    ) -> Fault:
        """Answer with an error, by Kafka's names: `error("Produce", "NOT_LEADER_OR_FOLLOWER")`.

        The error goes where Kafka puts it in the client's version, or where `at` says. The broker
        does not do what the request asks, or does it first with `after`.
        """
        more = {} if at is None else {"at": at}
        return self._describe("error", api, chosen, error=error, after=after, **more)

    def throttle(self, api: str, *, ms: int, **chosen: Unpack[Chosen]) -> Fault:
        """Tell the client to wait (`throttle_time_ms`), and read nothing from it for this time."""
        return self._describe("throttle", api, chosen, ms=ms)

    def damage_records(self, **chosen: Unpack[Chosen]) -> Fault:
        """Change a byte in the records of Fetch answers, so that their checksum is wrong."""
        return self._describe("damage_records", "Fetch", chosen)

    # --- when it answers ---

    def delay(
        self, api: str | None = None, *, ms: int, after: bool = False, **chosen: Unpack[Chosen]
    ) -> Fault:
        """Wait before a request is handled, or with `after` before it is answered."""
        return self._describe("delay", api, chosen, ms=ms, after=after)

    def lose_request(self, api: str | None = None, **chosen: Unpack[Chosen]) -> Fault:
        """Drop a request before the work; its connection is silent until the client closes it."""
        return self._describe("lose_request", api, chosen)

    def lose_answer(self, api: str | None = None, **chosen: Unpack[Chosen]) -> Fault:
        """Do the work and drop the answer; the connection is silent until the client closes it."""
        return self._describe("lose_answer", api, chosen)

    def black_hole(self, *, client_id: str, allow_unused: bool = False) -> Fault:
        """Drop every request of one client, as `lose_request` does."""
        chosen: Chosen = {"client_id": client_id, "allow_unused": allow_unused}
        return self._describe("black_hole", None, chosen)

    # --- connections ---

    def close(
        self, api: str | None = None, *, after: bool = False, **chosen: Unpack[Chosen]
    ) -> Fault:
        """Close the connection instead of an answer, before the work or `after` it."""
        return self._describe("close", api, chosen, after=after)

    def reset(
        self, api: str | None = None, *, after: bool = False, **chosen: Unpack[Chosen]
    ) -> Fault:
        """Reset the connection (RST) instead of an answer, before the work or `after` it."""
        return self._describe("reset", api, chosen, after=after)

    def tear(self, api: str, *, size: int | None = None, **chosen: Unpack[Chosen]) -> Fault:
        """Send only the first bytes of an answer, half of it by default, and close."""
        more = {} if size is None else {"bytes": size}
        return self._describe("tear", api, chosen, **more)

    # --- disks ---

    def disk(
        self,
        what: Literal["slow", "full", "fail"],
        *,
        ms: int = 0,
        topic: str | None = None,
        partition: int | None = None,
        allow_unused: bool = False,
    ) -> Fault:
        """Let writes to the files of partitions be slow by `ms`, or fail as a full or broken disk.

        Kafka stops to use a directory whose disk fails: a broker with one directory ends.
        """
        rule: dict[str, Any] = {"kind": "disk", "disk": what, "allow_unused": allow_unused}
        named = {"ms": ms or None, "topic": topic, "partition": partition}
        return self._keep(rule | {name: each for name, each in named.items() if each is not None})

    # --- all of them ---

    def clear(self, *, allow_unused: bool = False) -> None:
        """End all faults; raise UnusedFaultError if one has hit nothing or was never armed."""
        wrong = [f"{fault} was never armed: say when, as .once()" for fault in self._described]
        rules, self._rules, self._described = self._rules, [], []
        wrong += [found for rule in rules if (found := rule.end()) is not None]
        if wrong and not allow_unused:
            raise UnusedFaultError("\n".join(wrong))

    def _describe(self, kind: str, api: str | None, chosen: Chosen, **more: object) -> Fault:
        rule: dict[str, Any] = {"kind": kind}
        if api is not None:
            rule["api"] = api
        rule |= {name: value for name, value in {**more, **chosen}.items() if value is not False}
        return self._keep(rule)

    def _keep(self, rule: dict[str, Any]) -> Fault:
        fault = Fault(self._armed, rule)
        self._described.append(fault)
        return fault

    def _armed(self, fault: Fault, when: dict[str, Any]) -> Rule:
        """Arm a fault at every broker; raise ControlError if it can never act."""
        body = {**fault.rule, "when": when}
        places: list[_Place] = []
        if fault in self._described:
            self._described.remove(fault)
        for control in self._controls():
            armed = control.call("POST", "/faults", body=body)
            places.append(_Place(control, control.run, armed["id"]))
        rule = Rule(repr(fault), places, allow_unused=fault.allow_unused)
        self._rules.append(rule)
        return rule


__all__ = ["ControlError", "Fault", "Faults", "Rule", "UnusedFaultError"]
