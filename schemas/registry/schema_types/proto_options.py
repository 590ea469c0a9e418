"""Write the options of a compiled `.proto` file as text, including custom options."""

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
}
# Options that the text of the file shows in another form.
_NOT_WRITTEN: Final = frozenset({"map_entry", "uninterpreted_option"})


def escaped(text: str) -> str:
    """Return a string literal of a `.proto` file."""
    return "".join(
        _ESCAPES.get(each) or (each if each >= " " else f"\\{ord(each):03o}") for each in text
    )


class Options:
    """Reads options, including extensions in a pool of descriptors."""

    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool

    def of(self, described: Any) -> list[tuple[str, str]]:
        """Return the name and value of every option of a descriptor, sorted by name."""
        if not described.HasField("options"):
            return []
        options = described.options
        try:
            kind = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:
            pass  # No file in the pool imports descriptor.proto, so there are no custom options.
        else:
            options = GetMessageClass(kind).FromString(options.SerializeToString())
        return sorted(
            (f"({field.full_name})" if field.is_extension else field.name, text)
            for field, value in options.ListFields()
            if field.name not in _NOT_WRITTEN
            for text in _values(field, value)
        )


def _values(field: FieldDescriptor, value: Any) -> Iterator[str]:
    for each in value if field.is_repeated else (value,):
        yield _value(field, each)


def _value(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else str(known.name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{escaped(value)}"'
    if isinstance(value, bytes):
        return f'"{_escaped_bytes(value)}"'
    return str(value)


def _message(message: Any) -> str:
    """Return the literal of a message, with its fields sorted by name."""
    lines: list[str] = []
    for field, value in sorted(message.ListFields(), key=lambda each: str(each[0].full_name)):
        name = f"[{field.full_name}]" if field.is_extension else field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries = [_entry(field.message_type, key, value[key]) for key in sorted(value)]
            lines += [f"{name}: {text}" for text in entries]
        else:
            lines += [f"{name}: {text}" for text in _values(field, value)]
    inner = ",\n".join(lines).replace("\n", "\n  ")
    return f"{{\n  {inner}\n}}" if lines else "{}"


def _entry(kind: Any, key: Any, value: Any) -> str:
    names = kind.fields_by_name
    inner = f"key: {_value(names['key'], key)},\nvalue: {_value(names['value'], value)}"
    indented = inner.replace("\n", "\n  ")
    return f"{{\n  {indented}\n}}"


def _escaped_bytes(data: bytes) -> str:
    return "".join(
        _ESCAPES.get(chr(byte)) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in data
    )
