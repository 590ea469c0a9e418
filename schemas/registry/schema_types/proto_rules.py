"""The differences between two `.proto` files: Confluent's rules, names and messages.

A field is identified by its number, a message or enumeration by its name. A type from another file
is compared where a field uses it. (Sources: confluentinc/schema-registry, `protobuf-provider`,
package `diff`; protobuf.dev, "Updating A Message Type".)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

_HARMLESS: Final = frozenset(
    [
        "MESSAGE_ADDED",
        "MESSAGE_MOVED",
        "ENUM_ADDED",
        "ENUM_REMOVED",
        "ENUM_CONST_ADDED",
        "ENUM_CONST_CHANGED",
        "ENUM_CONST_REMOVED",
        "FIELD_ADDED",
        "FIELD_REMOVED",
        "FIELD_NAME_CHANGED",
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        "ONEOF_ADDED",
        "ONEOF_REMOVED",
        "ONEOF_FIELD_ADDED",
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
    ]
)
_SENTENCES: Final = {
    "PACKAGE_CHANGED": (
        "The package at '{}' in the %s schema does not match the package in the %s schema"
    ),
    "MESSAGE_REMOVED": ("The %s schema is missing a MESSAGE type at path '{}' in the %s schema"),
    "FIELD_KIND_CHANGED": (
        "The type of a field at path '{}' in the %s schema does not match the %s schema"
    ),
    "FIELD_SCALAR_KIND_CHANGED": (
        "The kind of a SCALAR field at path '{}' in the %s schema does not match its kind in the "
        "%s schema"
    ),
    "FIELD_NAMED_TYPE_CHANGED": (
        "The type of a MESSAGE field at path '{}' in the %s schema does not match its type in the "
        "%s schema"
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "The label for a NUMERIC field at path '{}' in the %s schema does not match its label in "
        "the %s schema"
    ),
    # Two spaces and a colon are Confluent's.
    "REQUIRED_FIELD_ADDED": (
        "A required field  at path '{}' in the %s schema is missing in the %s schema"
    ),
    "REQUIRED_FIELD_REMOVED": (
        "The %s schema is missing a required field at path: '{}' in the %s schema"
    ),
    "ONEOF_FIELD_REMOVED": ("The %s schema is missing a oneof field at path '{}' in the %s schema"),
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "Multiple fields in the oneof at path '{}' in the %s schema are outside a oneof in the %s "
        "schema"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "A field in the oneof at path '{}' in the %s schema is outside an existing oneof in the "
        "%s schema"
    ),
}
_SCALAR_KINDS: Final = {
    Field.TYPE_INT32: "GENERAL_NUMBER",
    Field.TYPE_INT64: "GENERAL_NUMBER",
    Field.TYPE_UINT32: "GENERAL_NUMBER",
    Field.TYPE_UINT64: "GENERAL_NUMBER",
    Field.TYPE_BOOL: "GENERAL_NUMBER",
    Field.TYPE_ENUM: "GENERAL_NUMBER",
    Field.TYPE_SINT32: "SIGNED_NUMBER",
    Field.TYPE_SINT64: "SIGNED_NUMBER",
    Field.TYPE_STRING: "STRING_OR_BYTES",
    Field.TYPE_BYTES: "STRING_OR_BYTES",
    Field.TYPE_FIXED32: "FIXED32",
    Field.TYPE_SFIXED32: "FIXED32",
    Field.TYPE_FIXED64: "FIXED64",
    Field.TYPE_SFIXED64: "FIXED64",
    Field.TYPE_FLOAT: "FLOAT",
    Field.TYPE_DOUBLE: "DOUBLE",
}


class Difference(NamedTuple):
    """One difference at a path like `#/Order/3`."""

    name: str
    path: str

    @property
    def is_compatible(self) -> bool:
        return self.name in _HARMLESS

    @property
    def message(self) -> str:
        """The sentence, with `%s` twice: for the reader and for the writer."""
        description = _SENTENCES.get(self.name, "").replace("{}", self.path)
        return f'{{errorType:"{self.name}", description:"{description}"}}'


@dataclass(slots=True)
class _Type:
    """A message or an enumeration, with its file."""

    local_name: str
    is_imported: bool
    described: DescriptorProto | EnumDescriptorProto


Path = tuple[str, ...]


def differences(
    old: Sequence[FileDescriptorProto], new: Sequence[FileDescriptorProto]
) -> list[Difference]:
    """Compare two compiled files; each is the last of a list that begins with its imports."""
    old, new = (
        [_with_written_labels(each) for each in old],
        [_with_written_labels(each) for each in new],
    )
    comparison = _Comparison(_types(old), _types(new))
    before, after = old[-1], new[-1]
    if before.package != after.package:
        comparison.tell("PACKAGE_CHANGED", ())
    comparison.messages(before.message_type, after.message_type, ())
    comparison.enums(before.enum_type, after.enum_type, ())
    return comparison.found


def _with_written_labels(file: FileDescriptorProto) -> FileDescriptorProto:
    """Return a copy of a file in which a field has a label only if the text has one."""
    if file.syntax in ("", "proto2"):
        return file
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    waiting = list(copy.message_type)
    while waiting:
        message = waiting.pop()
        waiting += message.nested_type
        for field in message.field:
            if field.label == Field.LABEL_OPTIONAL and not field.proto3_optional:
                field.ClearField("label")
    return copy


def _types(files: Sequence[FileDescriptorProto]) -> dict[str, _Type]:
    found: dict[str, _Type] = {}
    for file in files:
        prefix = f".{file.package}" if file.package else ""
        is_imported = file is not files[-1]
        waiting: list[tuple[str, DescriptorProto | EnumDescriptorProto]] = [
            (each.name, each) for each in (*file.message_type, *file.enum_type)
        ]
        while waiting:
            name, described = waiting.pop()
            found[f"{prefix}.{name}"] = _Type(name, is_imported, described)
            if isinstance(described, DescriptorProto):
                inner = (*described.nested_type, *described.enum_type)
                waiting += [(f"{name}.{each.name}", each) for each in inner]
    return found


class _Comparison:
    """Collects the differences between two files."""

    def __init__(self, old: dict[str, _Type], new: dict[str, _Type]) -> None:
        self.found: list[Difference] = []
        self._old = old
        self._new = new
        self._compared: set[tuple[str, str]] = set()
        """Pairs of types from other files, which are compared once for all fields that use them."""

    def tell(self, name: str, path: Path) -> None:
        self.found.append(Difference(name, "#/" + "/".join(path)))

    def messages(
        self, old: Iterable[DescriptorProto], new: Iterable[DescriptorProto], path: Path
    ) -> None:
        before, after = _numbered(old), _numbered(new)
        for name in sorted(before.keys() | after.keys()):
            at = (*path, name)
            if name not in after:
                self.tell("MESSAGE_REMOVED", at)
            elif name not in before:
                self.tell("MESSAGE_ADDED", at)
            else:
                (place, message), (new_place, new_message) = before[name], after[name]
                self.message(message, new_message, at)
                if place != new_place:
                    self.tell("MESSAGE_MOVED", at)

    def enums(
        self, old: Iterable[EnumDescriptorProto], new: Iterable[EnumDescriptorProto], path: Path
    ) -> None:
        before, after = {each.name: each for each in old}, {each.name: each for each in new}
        for name in sorted(before.keys() | after.keys()):
            at = (*path, name)
            if name not in after:
                self.tell("ENUM_REMOVED", at)
            elif name not in before:
                self.tell("ENUM_ADDED", at)
            else:
                self._constants(before[name], after[name], at)

    def _constants(self, old: EnumDescriptorProto, new: EnumDescriptorProto, path: Path) -> None:
        before = {each.number: each.name for each in old.value}
        after = {each.number: each.name for each in new.value}
        for number in sorted(before.keys() | after.keys()):
            if number not in after:
                self.tell("ENUM_CONST_REMOVED", (*path, str(number)))
            elif number not in before:
                self.tell("ENUM_CONST_ADDED", (*path, str(number)))
            elif before[number] != after[number]:
                self.tell("ENUM_CONST_CHANGED", (*path, str(number)))

    def message(self, old: DescriptorProto, new: DescriptorProto, path: Path) -> None:
        before, after = _Fields(old), _Fields(new)
        self._moves_into_oneofs(before, after, path)
        for name in sorted(before.oneofs.keys() | after.oneofs.keys()):
            if name not in after.oneofs:
                self.tell("ONEOF_REMOVED", (*path, name))
            elif name not in before.oneofs:
                self.tell("ONEOF_ADDED", (*path, name))
        for number in sorted(before.by_number.keys() | after.by_number.keys()):
            self._field(before, after, number, path)
        self.messages(old.nested_type, new.nested_type, path)
        self.enums(old.enum_type, new.enum_type, path)

    def _moves_into_oneofs(self, old: "_Fields", new: "_Fields", path: Path) -> None:
        """Record fields that were independent before and are now in one oneof."""
        for name, numbers in new.oneofs.items():
            known = [number for number in numbers if number in old.by_number]
            lonely = [number for number in known if number not in old.oneof_of]
            origins = {old.oneof_of[number] for number in known if number in old.oneof_of}
            if len(origins) + len(lonely) > 1:
                is_many = len(lonely) > 1
                how = (
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
                    if is_many
                    else ("FIELD_MOVED_TO_EXISTING_ONEOF")
                )
                self.tell(how, (*path, name))

    def _field(self, old: "_Fields", new: "_Fields", number: int, path: Path) -> None:
        before, after = old.by_number.get(number), new.by_number.get(number)
        old_oneof, new_oneof = old.oneof_of.get(number), new.oneof_of.get(number)
        plain = (*path, str(number))
        if before is None:
            assert after is not None, number
            if new_oneof is not None:
                self.tell("ONEOF_FIELD_ADDED", (*path, new_oneof, str(number)))
            else:
                self.tell(f"{_required(after)}FIELD_ADDED", plain)
        elif after is None:
            if old_oneof is None:
                self.tell(f"{_required(before)}FIELD_REMOVED", plain)
            elif not _is_gone(old, new, old_oneof):
                self.tell("ONEOF_FIELD_REMOVED", (*path, old_oneof, str(number)))
        else:
            if old_oneof is not None and new_oneof is None:
                self.tell("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", plain)
            at = plain if new_oneof is None else (*path, new_oneof, str(number))
            if before.name != after.name:
                self.tell("FIELD_NAME_CHANGED", at)
            self._types(before, after, at, (_label(old, before), _label(new, after)))

    def _types(
        self, old: Field, new: Field, path: Path, labels: tuple[int | None, int | None]
    ) -> None:
        old_entry, new_entry = _entry(self._old, old), _entry(self._new, new)
        kinds = [_kind(old, old_entry), _kind(new, new_entry)]
        if kinds[0] != kinds[1]:
            self.tell("FIELD_KIND_CHANGED", path)
        elif old_entry is not None and new_entry is not None:
            for before, after in zip(old_entry.field, new_entry.field, strict=True):
                self._types(before, after, path, (None, None))
        elif kinds[0] == "SCALAR":
            self._scalars(old, new, path, labels)
        else:
            self._named(old, new, path)

    def _scalars(
        self, old: Field, new: Field, path: Path, labels: tuple[int | None, int | None]
    ) -> None:
        kind = _SCALAR_KINDS[old.type]
        if kind != _SCALAR_KINDS[new.type]:
            self.tell("FIELD_SCALAR_KIND_CHANGED", path)
        elif None not in labels and labels[0] != labels[1]:
            is_text = kind == "STRING_OR_BYTES"
            what = "STRING_OR_BYTES" if is_text else "NUMERIC"
            self.tell(f"FIELD_{what}_LABEL_CHANGED", path)

    def _named(self, old: Field, new: Field, path: Path) -> None:
        before, after = self._old[old.type_name], self._new[new.type_name]
        if before.local_name != after.local_name:
            self.tell("FIELD_NAMED_TYPE_CHANGED", path)
        elif before.is_imported or after.is_imported:
            pair = (old.type_name, new.type_name)
            if pair in self._compared:
                return
            self._compared.add(pair)
            known = len(self.found)
            assert isinstance(before.described, DescriptorProto), old
            assert isinstance(after.described, DescriptorProto), new
            self.message(before.described, after.described, tuple(before.local_name.split(".")))
            if not all(each.is_compatible for each in self.found[known:]):
                self.tell("FIELD_NAMED_TYPE_CHANGED", path)


class _Fields:
    """The fields of a message by number, and its oneofs."""

    def __init__(self, message: DescriptorProto) -> None:
        self.by_number = {field.number: field for field in message.field}
        self.oneof_of: dict[int, str] = {}
        self.oneofs: dict[str, list[int]] = {}
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                name = message.oneof_decl[field.oneof_index].name
                self.oneof_of[field.number] = name
                self.oneofs.setdefault(name, []).append(field.number)


def _is_gone(old: _Fields, new: _Fields, oneof: str) -> bool:
    """Return whether a oneof was removed with all of its fields, which is harmless."""
    return oneof not in new.oneofs and not any(
        number in new.by_number for number in old.oneofs[oneof]
    )


def _numbered(messages: Iterable[DescriptorProto]) -> dict[str, tuple[int, DescriptorProto]]:
    plain = [each for each in messages if not each.options.map_entry]
    return {each.name: (place, each) for place, each in enumerate(plain)}


def _required(field: Field) -> str:
    return "REQUIRED_" if field.label == Field.LABEL_REQUIRED else ""


def _entry(types: dict[str, _Type], field: Field) -> DescriptorProto | None:
    """Return the message of a map's entries; None if the field is not a map."""
    found = types.get(field.type_name)
    if found is None or not isinstance(found.described, DescriptorProto):
        return None
    return found.described if found.described.options.map_entry else None


def _kind(field: Field, entry: DescriptorProto | None) -> str:
    if entry is not None:
        return "MAP"
    return "SCALAR" if field.type in _SCALAR_KINDS else "MESSAGE"


def _label(fields: _Fields, field: Field) -> int | None:
    """Return the label in the text of a field; None if it has none."""
    is_bare = field.number in fields.oneof_of or not field.HasField("label")
    return None if is_bare else field.label
