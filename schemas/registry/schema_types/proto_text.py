"""Write a compiled `.proto` file as text, so that equivalent files have the same text.

The form is that of Confluent's normalization: fields are sorted by number, options by name; types
have their full names; there are no comments. Messages keep their order, because clients refer to
them by position.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from schemas.registry.schema_types.proto_options import Options, escaped

_MAX_FIELD_NUMBER: Final = 536870911
_MAX_ENUM_NUMBER: Final = 2147483647
_EDITION_OFFSET: Final = 1023
_LABELS: Final = {
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
    FieldDescriptorProto.LABEL_OPTIONAL: "optional ",
}
Lines = list[str]


def file_text(file: FileDescriptorProto, pool: DescriptorPool) -> str:
    """Return the text of a file whose imports are all in the pool."""
    return _Writer(file, Options(pool)).text()


class _Writer:
    def __init__(self, file: FileDescriptorProto, options: Options) -> None:
        self._file = file
        self._options = options
        self._has_labels = file.syntax in ("", "proto2")

    def text(self) -> str:
        sections = [
            self._head(),
            self._imports(),
            self._statements(self._file),
            [
                *(line for each in self._file.message_type for line in self._message(each)),
                *(line for each in self._file.enum_type for line in self._enum(each)),
            ],
            self._extensions(self._file.extension, {}),
            [line for each in self._file.service for line in self._service(each)],
        ]
        return "\n".join("\n".join(lines) + "\n" for lines in sections if lines)

    def _head(self) -> Lines:
        lines = []
        if self._file.syntax == "proto3":
            lines.append('syntax = "proto3";')
        elif self._file.syntax == "editions":
            lines.append(f'edition = "{self._file.edition + _EDITION_OFFSET}";')
        if self._file.package:
            lines.append(f"package {self._file.package};")
        return lines

    def _imports(self) -> Lines:
        names = list(self._file.dependency)
        public = {names[number] for number in self._file.public_dependency}
        return [
            *(f'import "{escaped(name)}";' for name in sorted(set(names) - public)),
            *(f'import public "{escaped(name)}";' for name in sorted(public)),
        ]

    def _statements(self, described: Any) -> Lines:
        return [
            line
            for name, value in self._options.of(described)
            for line in f"option {name} = {value};".split("\n")
        ]

    def _message(self, message: DescriptorProto) -> Lines:
        return _block(f"message {message.name}", self._message_body(message))

    def _message_body(self, message: DescriptorProto) -> Lines:
        nested = {each.name: each for each in message.nested_type}
        inline = _maps(message) | _groups(message.field) | _groups(message.extension)
        plain = [each for each in message.field if not _is_in_oneof(each)]
        ends = [
            (each.start, each.end - 1, self._options.of(each)) for each in message.extension_range
        ]
        return [
            *_reserved(
                [(each.start, each.end - 1) for each in message.reserved_range],
                message.reserved_name,
                _MAX_FIELD_NUMBER,
            ),
            *self._statements(message),
            *(line for each in _by_number(plain) for line in self._field(each, nested)),
            *self._oneofs(message, nested),
            *(
                f"extensions {_range(start, end, _MAX_FIELD_NUMBER)}{_bracketed(options)};"
                for start, end, options in sorted(ends)
            ),
            *self._extensions(message.extension, nested),
            *(
                line
                for each in message.nested_type
                if each.name not in inline
                for line in self._message(each)
            ),
            *(line for each in message.enum_type for line in self._enum(each)),
        ]

    def _oneofs(self, message: DescriptorProto, nested: dict[str, DescriptorProto]) -> Lines:
        members: dict[int, list[FieldDescriptorProto]] = {}
        for field in _by_number(message.field):
            if _is_in_oneof(field):
                members.setdefault(field.oneof_index, []).append(field)
        lines = []
        for number, fields in members.items():
            oneof = message.oneof_decl[number]
            body = [line for each in fields for line in self._field(each, nested)]
            lines += _block(f"oneof {oneof.name}", [*self._statements(oneof), *body])
        return lines

    def _field(self, field: FieldDescriptorProto, nested: dict[str, DescriptorProto]) -> Lines:
        of_type = nested.get(field.type_name.rpartition(".")[2])
        if of_type is not None and of_type.options.map_entry:
            kind, label = _map_type(of_type), ""
        else:
            kind, label = _type_name(field), self._label(field)
        options = _bracketed([*self._options.of(field), *_pseudo_options(field)])
        if field.type == FieldDescriptorProto.TYPE_GROUP and of_type is not None:
            head = f"{label}group {of_type.name} = {field.number}{options}"
            return _block(head, self._message_body(of_type))
        return f"{label}{kind} {field.name} = {field.number}{options};".split("\n")

    def _label(self, field: FieldDescriptorProto) -> str:
        if _is_in_oneof(field):
            return ""
        if field.label == FieldDescriptorProto.LABEL_OPTIONAL:
            return "optional " if self._has_labels or field.proto3_optional else ""
        return _LABELS[field.label]

    def _extensions(
        self, fields: Iterable[FieldDescriptorProto], nested: dict[str, DescriptorProto]
    ) -> Lines:
        extended: dict[str, list[FieldDescriptorProto]] = {}
        for field in fields:
            extended.setdefault(field.extendee, []).append(field)
        return [
            line
            for name, members in extended.items()
            for line in _block(
                f"extend {name}",
                [each for field in _by_number(members) for each in self._field(field, nested)],
            )
        ]

    def _enum(self, enum: EnumDescriptorProto) -> Lines:
        reserved = _reserved(
            [(each.start, each.end) for each in enum.reserved_range],
            enum.reserved_name,
            _MAX_ENUM_NUMBER,
        )
        values = [
            line
            for value in [
                *enum.value[:1],  # The first value is the default; in proto3 it must be 0.
                *sorted(enum.value[1:], key=lambda each: (each.number, each.name)),
            ]
            for line in (
                f"{value.name} = {value.number}{_bracketed(self._options.of(value))};".split("\n")
            )
        ]
        return _block(f"enum {enum.name}", [*reserved, *self._statements(enum), *values])

    def _service(self, service: ServiceDescriptorProto) -> Lines:
        lines = self._statements(service)
        for method in service.method:
            asks = "stream " if method.client_streaming else ""
            answers = "stream " if method.server_streaming else ""
            head = (
                f"rpc {method.name} ({asks}{method.input_type}) returns "
                f"({answers}{method.output_type})"
            )
            options = self._statements(method)
            lines += _block(head, options) if options else [f"{head};"]
        return _block(f"service {service.name}", lines)


def _block(head: str, body: Lines) -> Lines:
    return [f"{head} {{", *(f"  {line}" for line in body), "}"] if body else [f"{head} {{}}"]


def _by_number(fields: Iterable[FieldDescriptorProto]) -> list[FieldDescriptorProto]:
    return sorted(fields, key=lambda field: field.number)


def _is_in_oneof(field: FieldDescriptorProto) -> bool:
    return field.HasField("oneof_index") and not field.proto3_optional


def _maps(message: DescriptorProto) -> set[str]:
    return {each.name for each in message.nested_type if each.options.map_entry}


def _groups(fields: Iterable[FieldDescriptorProto]) -> set[str]:
    """Return the names of groups: their messages are written at their fields."""
    return {
        field.type_name.rpartition(".")[2]
        for field in fields
        if field.type == FieldDescriptorProto.TYPE_GROUP
    }


def _type_name(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return str(field.type_name)
    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _map_type(entry: DescriptorProto) -> str:
    key, value = _by_number(entry.field)
    return f"map<{_type_name(key)}, {_type_name(value)}>"


def _pseudo_options(field: FieldDescriptorProto) -> list[tuple[str, str]]:
    """Yield the two pseudo-options, which only look like options: the default and the JSON name."""
    options = []
    if field.HasField("default_value"):
        is_text = field.type in (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES)
        # The compiler keeps the escapes in the default of a bytes field.
        text = field.default_value
        if field.type == FieldDescriptorProto.TYPE_STRING:
            text = escaped(text)
        options.append(("default", f'"{text}"' if is_text else text))
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        options.append(("json_name", f'"{escaped(field.json_name)}"'))
    return options


def _json_name(name: str) -> str:
    """Return the compiler's default for a JSON name (protobuf.dev, "ProtoJSON Format")."""
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _bracketed(options: Sequence[tuple[str, str]]) -> str:
    texts = [f"{name} = {value}" for name, value in sorted(options)]
    if not texts:
        return ""
    if len(texts) == 1:
        return f" [{texts[0]}]"
    inner = ",\n".join(texts).replace("\n", "\n  ")
    return f" [\n  {inner}\n]"


def _reserved(ranges: Iterable[tuple[int, int]], names: Iterable[str], highest: int) -> Lines:
    return [
        *(f"reserved {_range(start, end, highest)};" for start, end in sorted(ranges)),
        *(f'reserved "{escaped(name)}";' for name in sorted(names)),
    ]


def _range(start: int, end: int, highest: int) -> str:
    if start == end:
        return str(start)
    return f"{start} to {'max' if end >= highest else end}"
