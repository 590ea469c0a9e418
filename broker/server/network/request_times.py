"""How long requests take, by API, in the parts that Kafka's RequestMetrics has; and their errors.

    arrived       begun          waits            ready          sent away      written
       |- queue ----|--- local ----|--- remote -----|- response ---|---- send -----|
                                                       queue

Nearly every request is the first one of its turn and is answered at once: its queue and remote time
are zero, its total is its local time, and it costs one increment. Any other has a `Timing`. The
send time is that of a write which the socket did not take at once, for the API of the last answer
in it, and zero for all others. The throttle time is that for which a client above its quota was
muted.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from broker.server.distribution import QUANTILES, Distribution, quantiles
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey

FOLLOWER_FETCH: Final = -1
"""The key of Fetches that followers send; those of consumers have the key of the API."""
FETCHES_BY_SENDER = {"FetchConsumer": int(ApiKey.FETCH), "FetchFollower": FOLLOWER_FETCH}
PARTS = {
    "totaltimems": "Milliseconds from the arrival of a request to its answer",
    "requestqueuetimems": "Milliseconds behind other requests of its connection",
    "localtimems": "Milliseconds of its handling here",
    "remotetimems": "Milliseconds that it waited for others: followers, records, a coordinator",
    "throttletimems": "Milliseconds for which its client was muted by a quota",
    "responsequeuetimems": "Milliseconds that its answer waited for earlier ones",
    "responsesendtimems": "Milliseconds that a write of answers waited for its client to read",
}

_OF_EVERY = ("totaltimems", "localtimems")
"""The parts that every request has; the others are counted where they are not 0."""


class ApiTimes:
    """The requests of one API: their number by version, their times, the errors of answers."""

    __slots__ = ("answers", "at_once", "codes", "failures", "late", "sends", "versions")

    def __init__(self) -> None:
        self.versions: Counter[int] = Counter()
        self.answers = 0
        self.failures = 0
        """The answers with an error. Both are counted in one step: their difference never falls."""
        self.codes: Counter[int] = Counter()
        """The error codes in answers: one answer may have many."""
        self.at_once = Distribution()
        """The local, and total, time of requests that are not in `late`."""
        self.late: dict[str, Distribution] = {}
        """By part, the times of other requests; parts that take no time are left out."""
        self.sends = Distribution()

    def note_codes(self, codes: list[int]) -> None:
        """Count the errors of one answer."""
        self.failures += 1
        self.codes.update(codes)

    def note(self, part: str, seconds: float) -> None:
        """Count a part of a request that was not answered at once."""
        if part not in self.late:
            self.late[part] = Distribution()
        self.late[part].add(seconds)

    def note_queued(self, arrived: float, began: float, ready: float) -> None:
        """Count a request that was answered at once, but waited behind another one."""
        self.note("requestqueuetimems", began - arrived)
        self.note("localtimems", ready - began)
        self.note("totaltimems", ready - arrived)


UNCOUNTED = ApiTimes()
"""Of requests that no metric shows: logins, and those to controllers."""


class Timing:
    """The times of one request that is answered later, in monotonic seconds."""

    __slots__ = ("_times", "arrived", "began", "ready", "waits_since")

    def __init__(self, times: ApiTimes, arrived: float, began: float) -> None:
        self._times = times
        self.arrived = arrived
        self.began = began
        self.waits_since: float | None = None
        """The time at which it began to wait for another."""
        self.ready = began

    def end(self, now: float) -> Distribution:
        """Count it, when its answer is sent away; return where the write is counted."""
        times = self._times
        since = self.ready if self.waits_since is None else self.waits_since
        times.note("totaltimems", now - self.arrived)
        times.note("localtimems", since - self.began)
        for part, seconds in (
            ("requestqueuetimems", self.began - self.arrived),
            ("remotetimems", self.ready - since),
            ("responsequeuetimems", now - self.ready),
        ):
            if seconds > 0:
                times.note(part, seconds)
        return times.sends


class RequestTimes(dict[int, ApiTimes]):
    """The times of each API that has been asked for."""

    def __missing__(self, key: int) -> ApiTimes:
        made = self[key] = ApiTimes()
        return made

    def by_name(self) -> Iterator[tuple[str, list[ApiTimes]]]:
        """Return them by Kafka's names; a Fetch counts both as such and by who sends it."""
        for key, times in sorted(self.items()):
            if key not in (ApiKey.FETCH, FOLLOWER_FETCH):
                yield ApiKey(key).name.title().replace("_", ""), [times]
        found = {name: self[key] for name, key in FETCHES_BY_SENDER.items() if key in self}
        for name, times in found.items():
            yield name, [times]
        if found:
            yield "Fetch", list(found.values())


def is_of_follower(request: Any) -> bool:
    """Return whether a follower sends a Fetch."""
    return bool(request.replica_id >= 0 or request.replica_state.replica_id >= 0)


def errors_of(times: list[ApiTimes]) -> dict[str, int]:
    """Return the errors in answers by Kafka's names; NONE has the answers without one."""
    found = Counter({ErrorCode.NONE.name: sum(each.answers - each.failures for each in times)})
    for each in times:
        for code, count in each.codes.items():
            found[ErrorCode(code).name] += count
    return found


def part_of(times: list[ApiTimes], part: str, now: float) -> tuple[int, dict[str, float]]:
    """Return the count of a part, and its quantiles of the last minutes in milliseconds."""
    at_once = [each.at_once for each in times]
    if part == "responsesendtimems":
        measured = [each.sends for each in times]
    else:
        measured = [each.late[part] for each in times if part in each.late]
    others = at_once if part in _OF_EVERY else []
    counts = _sum([each.recent(now) for each in (*measured, *others)])
    count, zeros = sum(each.count for each in (*measured, *others)), 0
    if part not in _OF_EVERY:
        totals = [each.late["totaltimems"] for each in times if "totaltimems" in each.late]
        count = sum(each.count for each in (*at_once, *totals))
        recent = _sum([each.recent(now) for each in (*at_once, *totals)])
        zeros = max(0, sum(recent) - sum(counts))
    found = quantiles(counts, zeros)
    return count, {label: 1_000 * found[label] for label in QUANTILES}


def _sum(all_counts: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*all_counts, strict=True)]
