"""Reads Avro of strangers: neither their bytes nor their schema can end or stop the process.

fastavro's reader in C calls itself for each level of a value, and nothing stops it: twenty thousand
bytes of a type that holds itself end the process with a segmentation fault. And an array whose
items have no bytes (null, a record without fields) may claim any length in eight bytes. Values of
such schemas are read by fastavro's reader in Python, which raises RecursionError, and which counts
the items.
"""

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final, Protocol

from fastavro import _read_py, parse_schema, schemaless_reader
from fastavro.io.binary_decoder import BinaryDecoder

_MAX_DEPTH: Final = 400
"""Levels of types within types that the stack of a thread surely holds in C."""
_FREE_ITEMS: Final = 100_000
"""An array may have so many items, and one more for each byte of the value."""
_NAMED: Final = ("record", "error", "enum", "fixed")
_OPTIONS: Final = {
    "return_record_name": False,
    "return_record_name_override": False,
    "handle_unicode_errors": "strict",
    "return_named_type": False,
    "return_named_type_override": False,
}


class Decode(Protocol):
    """Returns the value whose bytes begin at a place."""

    def __call__(self, data: bytes, start: int = 0) -> Any: ...


def avro_reader(schema: Any, wanted: Any = None, **options: Any) -> Decode:
    """Return a function that reads values of a parsed schema as the `wanted` one.

    The function raises whatever fastavro raises on bytes that are not of the schema,
    RecursionError for a value that is nested too deeply, ValueError for an array without end.
    """
    types: dict[str, Any] = {}
    _collect(schema, types)
    is_odd = _is_deep(schema, types) or _Sizes(types).has_empty_items(schema)
    read = _careful(schema, wanted, options) if is_odd else None

    def decode(data: bytes, start: int = 0) -> Any:
        source = BytesIO(data)
        source.seek(start)
        return (
            schemaless_reader(source, schema, wanted, **options) if read is None else read(source)
        )

    return decode


def _careful(schema: Any, wanted: Any, options: dict[str, Any]) -> Callable[[BytesIO], Any]:
    """Return what does the same as fastavro's `schemaless_reader`, with a decoder that counts."""
    names: dict[str, Any] = {"writer": {}, "reader": {}}
    schema = parse_schema(schema, names["writer"])
    wanted = None if wanted is None else parse_schema(wanted, names["reader"])
    read: Any = _read_py.read_data

    def decode(source: BytesIO) -> Any:
        return read(_Counting(source), schema, names, wanted, {**_OPTIONS, **options})

    return decode


class _Counting(BinaryDecoder):
    """Refuses arrays with more items than their bytes explain."""

    def __init__(self, source: BytesIO) -> None:
        super().__init__(source)  # type: ignore[no-untyped-call]
        self._items = 0
        self._most_items = _FREE_ITEMS + source.getbuffer().nbytes

    def iter_array(self) -> Iterator[None]:
        """Give once for each item."""
        for _ in super().iter_array():  # type: ignore[no-untyped-call]
            self._items += 1
            if self._items > self._most_items:
                raise ValueError("an array has more items than its bytes explain")
            yield


def _inner(schema: Any) -> Iterator[Any]:
    """Give the types that stand directly within one."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, dict):
        yield from (schema[each] for each in ("items", "values") if each in schema)
        yield from (field["type"] for field in schema.get("fields", ()))
        if not isinstance(schema["type"], str):
            yield schema["type"]


def _collect(whole: Any, types: dict[str, Any]) -> None:
    """Find every named type of a parsed schema: there, names are full."""
    waiting = [whole]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, dict) and schema.get("type") in _NAMED:
            types[schema["name"]] = schema
        waiting.extend(_inner(schema))


def _is_deep(whole: Any, types: dict[str, Any]) -> bool:
    """Tell whether values may have more levels than the stack holds."""
    depths: dict[int, int] = {}  # 0 while the types within a type are looked at
    waiting = [whole]
    while waiting:
        schema = waiting[-1]
        inner = [
            types.get(each, each) if isinstance(each, str) else each for each in _inner(schema)
        ]
        inner = [each for each in inner if not isinstance(each, str)]
        if id(schema) not in depths:
            depths[id(schema)] = 0
            if any(depths.get(id(each)) == 0 for each in inner):
                return True  # it holds itself
            waiting += [each for each in inner if id(each) not in depths]
            continue
        waiting.pop()
        depths[id(schema)] = 1 + max((depths[id(each)] for each in inner), default=0)
        if depths[id(schema)] > _MAX_DEPTH:
            return True
    return False


class _Sizes:
    """Decides which types may have no bytes."""

    def __init__(self, types: dict[str, Any]) -> None:
        self._types = types
        self._empty: dict[str, bool] = {}

    def has_empty_items(self, whole: Any) -> bool:
        """Tell whether there is an array of items without bytes."""
        waiting = [whole]
        while waiting:
            schema = waiting.pop()
            is_array = isinstance(schema, dict) and schema["type"] == "array"
            if is_array and self._is_empty(schema["items"], 0):
                return True
            waiting.extend(_inner(schema))
        return False

    def _is_empty(self, schema: Any, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            return True
        if isinstance(schema, str) and schema in self._types:
            if schema not in self._empty:
                self._empty[schema] = True  # of a type within itself
                self._empty[schema] = self._is_empty(self._types[schema], depth + 1)
            return self._empty[schema]
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict):
            return self._is_empty(kind, depth + 1)
        if kind in ("record", "error"):
            return all(self._is_empty(each["type"], depth + 1) for each in schema["fields"])
        return bool(kind == "null" or (kind == "fixed" and schema["size"] <= 0))
