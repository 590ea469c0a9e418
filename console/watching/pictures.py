"""What is seen of a cluster at one time. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class PartitionPicture(NamedTuple):
    """One partition: its leader, -1 without one, and its replicas."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(frozen=True)
class Picture:
    """A cluster at one time."""

    brokers: Mapping[int, str] = field(default_factory=dict)
    """The address of each broker that is there."""
    controller: int = -1
    partitions: Mapping[tuple[str, int], PartitionPicture] = field(default_factory=dict)
    lags: Mapping[str, int] = field(default_factory=dict)
    """By group, how many records it has not read; without those that could not be asked for."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The states of the stack's processes, if the console belongs to one."""
    ages_ms: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[int, int] = field(default_factory=dict)
    """See `Flow`, of which `lags` are too."""

    @property
    def known_brokers(self) -> set[int]:
        """Those that are there, and those that have replicas."""
        return {*self.brokers, *(each for p in self.partitions.values() for each in p.replicas)}

    def as_json(self) -> dict[str, Any]:
        """Return the figures for the page."""
        leads: Counter[int] = Counter(each.leader for each in self.partitions.values())
        has: Counter[int] = Counter()
        behind: Counter[int] = Counter()
        for each in self.partitions.values():
            has.update(each.replicas)
            behind.update(set(each.replicas) - each.in_sync)
        return {
            "controller": self.controller,
            "without_leader": leads.pop(-1, 0),
            "under_replicated": sum(
                len(each.in_sync) < len(each.replicas) for each in self.partitions.values()
            ),
            "brokers": [
                {
                    "id": number,
                    "address": self.brokers.get(number),
                    "is_there": number in self.brokers,
                    "leads": leads[number],
                    "replicas": has[number],
                    "out_of_sync": behind[number],
                    "written": self.written.get(number),
                    "part": self.parts.get(f"broker-{number}"),
                }
                for number in sorted(self.known_brokers)
            ],
            "groups": [
                {
                    "id": group,
                    "lag": str(lag),
                    "age_ms": self.ages_ms.get(group, 0 if lag == 0 else None),
                }
                for group, lag in sorted(self.lags.items())
            ],
        }
