"""The rights that each program needs on a cluster with an authorizer, as `rights.yaml` lists them.

They are rules of Kafka's kind: a principal is allowed an operation on a resource, whose name is
whole (LITERAL) or a beginning (PREFIXED).
"""

import shlex
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

EVERY = "*"
"""As a name: every resource of the kind."""
OPERATORS = frozenset({"lag", "backup", "restore"})
"""Programs of the people who run a cluster: they get their rights only where they are named."""
_FILE = "rights.yaml"
_CLUSTER = "cluster"


class Right(NamedTuple):
    """One operation that a program needs on one resource."""

    kind: str
    """topic, group, transactional-id or cluster."""
    name: str
    is_prefix: bool
    operation: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}{'*' if self.is_prefix else ''}"

    def covers(self, kind: str, name: str) -> bool:
        """Tell whether it is about a resource."""
        return kind == self.kind and (
            name.startswith(self.name) if self.is_prefix else self.name in (name, EVERY)
        )


@cache
def programs() -> dict[str, tuple[Right, ...]]:
    """Return the rights of every program, by its name."""
    written = yaml.safe_load(files("common.kafka").joinpath(_FILE).read_text(encoding="utf-8"))
    return {program: tuple(_rights(kinds)) for program, kinds in written.items()}


def unnamed() -> dict[str, tuple[Right, ...]]:
    """Return the rights of the programs that get theirs where none is named."""
    return {name: rights for name, rights in programs().items() if name not in OPERATORS}


def _rights(kinds: dict[str, dict[str, list[str]]]) -> Iterator[Right]:
    for kind, names in kinds.items():
        for name, operations in names.items():
            for operation in operations:
                is_prefix = name.endswith("*") and name != EVERY
                beginning = name.removesuffix("*") if is_prefix else name
                yield Right(kind, beginning, is_prefix, operation)


def commands(principal: str, rights: tuple[Right, ...]) -> Iterator[str]:
    """Return the commands that give a principal these rights, one for each resource."""
    by_resource: dict[tuple[str, str, bool], list[str]] = {}
    for each in rights:
        by_resource.setdefault(each[:3], []).append(each.operation)
    for (kind, name, is_prefix), operations in by_resource.items():
        resource = "" if kind == _CLUSTER else f" {shlex.quote(name)}"
        yield " ".join(
            (
                f"millstream acls --add --allow-principal {principal}",
                *(f"--operation {operation}" for operation in operations),
                f"--{kind}{resource}",
                *(("--resource-pattern-type prefixed",) if is_prefix else ()),
            )
        )
