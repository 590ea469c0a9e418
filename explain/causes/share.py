"""What a share group has given out, and what keeps records from its members."""

from collections.abc import Iterator

from explain.causes.cause import Figures, fact, notice, problem
from explain.causes.group import SHARE, lag
from explain.facts import GroupCase, Look


def _look(case: GroupCase) -> Look | None:
    return case.group.latest if case.group.kind == SHARE else None


def _no_members(case: GroupCase) -> Iterator[Figures]:
    look = _look(case)
    if look is not None and not look.members:
        yield {"group": case.group.group_id, "lag": lag(look), "partitions": len(look.committed)}


def _not_started(case: GroupCase) -> Iterator[Figures]:
    if _look(case) is not None and case.group.unstarted:
        yield {"group": case.group.group_id, "partitions": case.group.unstarted}


def _locked(case: GroupCase) -> Iterator[Figures]:
    """A share group in which nothing was finished between two looks, with records to give."""
    looks = case.group.looks
    if case.group.kind != SHARE or len(looks) == 1 or not looks[-1].members:
        return
    before, after = looks[0], looks[-1]
    for name, start in sorted(after.committed.items()):
        left = after.ends.get(name, start) - start
        same = before.committed.get(name) == start
        if same and left > 0 and before.ends.get(name, start) > start:
            yield {
                "group": case.group.group_id,
                "partition": name,
                "start": start,
                "left": left,
                "for": after.at_ms - before.at_ms,
                "members": len(after.members),
            }


def _stands(case: GroupCase) -> Iterator[Figures]:
    look = _look(case)
    for name, start in sorted(look.committed.items()) if look else ():
        if name in look.ends if look else False:
            yield {
                "group": case.group.group_id,
                "partition": name,
                "start": start,
                "left": look.ends[name] - start if look else 0,
            }


def _archived(case: GroupCase) -> Iterator[Figures]:
    for name, runs in sorted(case.group.shared.items()):
        gone = [each for each in runs if each.is_archived]
        if gone:
            yield {
                "group": case.group.group_id,
                "partition": name,
                "count": sum(each.last - each.first + 1 for each in gone),
                "first": gone[0].first,
                "last": gone[-1].last,
                "times": max(each.deliveries for each in gone),
            }


def _returned(case: GroupCase) -> Iterator[Figures]:
    for name, runs in sorted(case.group.shared.items()):
        again = [each for each in runs if not each.is_archived and each.deliveries > 0]
        if again:
            yield {
                "group": case.group.group_id,
                "partition": name,
                "count": sum(each.last - each.first + 1 for each in again),
                "first": again[0].first,
                "times": max(each.deliveries for each in again),
            }


SHARED = (
    problem(
        "share-group-without-members",
        _no_members,
        "Share group {group} has no members, so it gives records to nobody. It has "
        "{lag:record} to give in {partitions:partition}.",
        "Start a share consumer with this group.id.",
    ),
    notice(
        "share-group-not-started",
        _not_started,
        "Share group {group} has not finished any record in {partitions:names} yet: "
        "share.auto.offset.reset decides where it begins, and latest (the default) skips the "
        "records that are there.",
        "Set it before the first member: `millstream configs --alter --entity-type groups "
        "--entity-name {group} --add-config share.auto.offset.reset=earliest`.",
    ),
    problem(
        "share-records-locked",
        _locked,
        "Share group {group} has finished nothing in {partition} for at least {for:duration}: it "
        "stands at offset {start} with {left:record} to finish, which its {members:member} hold "
        "locked, have been given before, or do not ask for.",
        "A lock ends after group.share.record.lock.duration.ms; a record that fails "
        "group.share.delivery.count.limit times is archived. Look whether the members acknowledge.",
    ),
    problem(
        "share-records-archived",
        _archived,
        "Share group {group} has archived {count:record} in {partition} (offsets {first} to "
        "{last}) after up to {times} deliveries: nobody in the group gets them again.",
        "Members have rejected them, or have failed group.share.delivery.count.limit times. "
        "Correct the member, and write the records again.",
    ),
    notice(
        "share-records-returned",
        _returned,
        "Members of share group {group} have given back {count:record} in {partition}, from offset "
        "{first} on, unfinished: released, or not finished before the lock ended. The most "
        "deliveries of one are {times}.",
        "After group.share.delivery.count.limit deliveries a record is archived. Look why the "
        "members fail, or raise group.share.record.lock.duration.ms if they are slow.",
    ),
    fact(
        "share-group-progress",
        _stands,
        "Share group {group} stands at offset {start} of {partition}, with {left:record} to "
        "finish.",
    ),
)
