"""What must hold of copies when all is over: nothing lost, nothing twice, nothing out of order."""

from collections import Counter
from dataclasses import dataclass, field

from tests.mirror.faults.load import KEYS
from tests.mirror.faults.world import World


@dataclass
class Verdict:
    """What became of one topic."""

    topic: str
    written: int
    copied: int
    lost: int
    twice: int
    problems: list[str] = field(default_factory=list)


def rising(numbers: list[int]) -> bool:
    """Whether first copies come in the order they were written in."""
    first = list(dict.fromkeys(numbers))
    return first == sorted(first)


def judged(
    topic: str, copies: list[list[int]], must: set[int], may: set[int], *, once: bool
) -> Verdict:
    """Judge copies, by partition: all that must be there, of what may be there, in order."""
    counts = Counter(number for each in copies for number in each)
    lost, strange = must - set(counts), set(counts) - may
    verdict = Verdict(topic, len(may), len(counts), len(lost), sum(counts.values()) - len(counts))
    if lost:
        verdict.problems.append(f"{topic}: lost {sorted(lost)[:5]}")
    if strange:
        verdict.problems.append(f"{topic}: nobody wrote {sorted(strange)[:5]}")
    if once and verdict.twice:
        again = [number for number, count in counts.items() if count > 1]
        verdict.problems.append(f"{topic}: {len(again)} more than once: {sorted(again)[:5]}")
    if not all(map(rising, copies)):
        verdict.problems.append(f"{topic}: not in the order it was written in")
    return verdict


def judge(world: World) -> list[Verdict]:
    """Judge everything, when the loads have ended and the mirror has come to their ends."""
    once = world.is_exactly_once
    verdicts = []
    for topic, load in world.loads.items():
        copies = world.copies(topic)
        numbers = [[number for _, number in each] for _, each in sorted(copies.items())]
        all_written = {number for each in load.written.values() for number in each}
        may, must = all_written, all_written
        if topic == "again":
            may = all_written.union(*world.earlier)
        elif topic == "states":
            must = last_of_each_key(all_written)
        elif topic == "short":
            # Nothing was deleted from it and nothing fails: the numbers are the offsets.
            must = {number for number in all_written if not world.may_be_lost(number)}
        verdicts.append(judged(topic, numbers, must, may, once=once))
        if topic == "again":
            verdicts[-1].problems += judge_earlier(world.earlier, numbers[0])
    verdicts[0].problems += judge_group(world)
    return verdicts


def last_of_each_key(numbers: set[int]) -> set[int]:
    return set({number % KEYS: number for number in sorted(numbers)}.values())


def judge_earlier(earlier: list[list[int]], copied: list[int]) -> list[str]:
    """Of a topic that is gone the copy may lack the end, and nothing before it."""
    found = set(copied)
    problems = []
    for written in earlier:
        there = [number in found for number in written]
        if there != sorted(there, reverse=True):
            problems.append("again: something in the middle of one that is gone was not copied")
    return problems


def judge_group(world: World) -> list[str]:
    """A group that fails over skips nothing, in spite of the markers between the records."""
    begins, read = world.translated(), set(world.read_by_group)
    problems = []
    for partition, copies in world.copies("orders").items():
        written = set(world.loads["orders"].written[partition])
        still_there = {number for offset, number in copies if offset >= begins.get(partition, 0)}
        if skipped := written - read - still_there:
            problems.append(f"orders-{partition}: the group skips {sorted(skipped)[:5]}")
    if not sum(begins.values()):
        problems.append("orders: nothing is known of the group")
    return problems
