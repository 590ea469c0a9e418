"""What a principal may not do, by the access rules of the cluster."""

from collections.abc import Iterator, Sequence

from explain.causes.cause import Figures, fact, problem
from explain.facts import Right


def _denied(rights: Sequence[Right]) -> Iterator[Figures]:
    for one in rights:
        if not one.is_allowed and one.denied_by is not None:
            yield {
                "principal": one.principal,
                "operation": one.operation,
                "resource": one.resource,
                "rule": one.denied_by,
            }


def _missing(rights: Sequence[Right]) -> Iterator[Figures]:
    for one in rights:
        if not one.is_allowed and one.denied_by is None:
            yield {
                "principal": one.principal,
                "operation": one.operation,
                "resource": one.resource,
                "option": one.resource.partition(" ")[0],
                "name": one.resource.partition(" ")[2],
            }


def _allowed(rights: Sequence[Right]) -> Iterator[Figures]:
    for one in rights:
        if one.is_allowed:
            yield {
                "principal": one.principal,
                "operation": one.operation,
                "resource": one.resource,
            }


RIGHT = (
    problem(
        "right-denied",
        _denied,
        "{principal} may not {operation} {resource}: a rule denies it ({rule}).",
        "A DENY rule wins over every ALLOW rule: remove it with `millstream acls --remove`.",
    ),
    problem(
        "right-missing",
        _missing,
        "{principal} may not {operation} {resource}: no rule allows it.",
        "`millstream acls --add --allow-principal {principal} --operation {operation} --{option} "
        "{name}` allows it.",
    ),
    fact("right-given", _allowed, "{principal} may {operation} {resource}."),
)
