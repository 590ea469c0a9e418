"""Which fields one version of a struct has on the wire, in which order and of which width.

Ranges of versions are as Kafka writes them: "0+" is 0 and up, "3-7" both ends included, "2" just
one.
"""

from functools import cache
from struct import calcsize
from typing import NamedTuple, cast

from common.kafka.protocol.message import Field, Message, Struct
from common.kafka.protocol.wire import EncodeError

LAST_VERSION = 32767


class VersionRange(NamedTuple):
    """The versions `first` to `last`, both included."""

    first: int
    last: int

    def includes(self, version: int) -> bool:
        """Return whether the version lies in the range."""
        return self.first <= version <= self.last


NO_VERSIONS = VersionRange(LAST_VERSION, -1)


@cache
def parse_versions(text: str) -> VersionRange:
    """Parse a range; an empty text means no version at all."""
    if not text:
        return NO_VERSIONS
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), LAST_VERSION)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))


NUMBER_FORMATS = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "bool": "?",
}
FIXED_FORMATS = NUMBER_FORMATS | {"uuid": "16s"}


class Layout(NamedTuple):
    """The fields of a struct, sorted by what one version does with them."""

    plain: list[Field]
    tagged: list[Field]
    absent: list[Field]


def layout_of(struct: type[Struct], version: int) -> Layout:
    """Sort the fields of a struct for a version; the tagged ones by tag."""
    layout = Layout([], [], [])
    for field in struct.__fields__.values():
        if not parse_versions(field.versions).includes(version):
            layout.absent.append(field)
        elif field.tag is not None:
            layout.tagged.append(field)
        else:
            layout.plain.append(field)
    layout.tagged.sort(key=lambda field: cast(int, field.tag))
    return layout


def is_nullable(field: Field, version: int) -> bool:
    """Return whether the field may be null in this version."""
    return parse_versions(field.nullable).includes(version)


def null_marker(field: Field) -> int:
    """Return the marker of a struct that is null; a struct that is not null has the marker 1.

    KIP-893 has -1 for it. The marker of a field with a tag is an unsigned number, with 0.
    """
    return -1 if field.tag is None else 0


def is_flexible(message: type[Message], version: int) -> bool:
    """Return whether the version has compact lengths and tagged fields; raise if it is unknown."""
    versions = parse_versions(message.__versions__)
    if not versions.includes(version):
        raise EncodeError(f"{message.__name__} has versions {message.__versions__}, not {version}")
    return parse_versions(message.__flexible__).includes(version)


def min_size_bytes(struct: type[Struct], version: int, *, flexible: bool) -> int:
    """Return the fewest bytes that one struct can take: they limit the count of an array."""
    fields = layout_of(struct, version).plain
    sizes = [_min_field_size_bytes(field, version, flexible=flexible) for field in fields]
    return sum(sizes) + flexible


def _min_field_size_bytes(field: Field, version: int, *, flexible: bool) -> int:
    if field.kind in FIXED_FORMATS:
        return calcsize(">" + FIXED_FORMATS[field.kind])
    if field.kind == "struct":
        if is_nullable(field, version):
            return 1
        return min_size_bytes(cast("type[Struct]", field.element), version, flexible=flexible)
    return min_length_size_bytes(field.kind, flexible=flexible)


def min_length_size_bytes(kind: str, *, flexible: bool) -> int:
    """Return the fewest bytes a length or count takes."""
    if flexible:
        return 1
    return 2 if kind == "string" else 4
