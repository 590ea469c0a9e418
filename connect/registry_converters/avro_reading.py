"""Whether values of one Avro schema can be read with another. Pure."""

import json

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.errors import AvroException
from avro.schema import parse


def why_unreadable(writer: str, reader: str) -> str | None:
    """Return why values of the writer's schema cannot be read; None when they can."""
    try:
        written, read = parse(_bare(writer)), parse(_bare(reader))
        checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        found = checker.get_compatibility(read, written)
    except (AvroException, RecursionError, ValueError, TypeError, KeyError) as error:
        return f"they cannot be compared: {error}"
    if found.compatibility is SchemaCompatibilityType.compatible:
        return None
    return "; ".join(sorted(found.messages)) or "they are incompatible"


def _bare(text: str) -> str:
    """Leave out what only Connect knows: the checker's parser is strict about defaults there."""
    return json.dumps(_without(json.loads(text)))


def _without(avro: object) -> object:
    match avro:
        case dict():
            return {
                name: _without(each) if name != "default" else each
                for name, each in avro.items()
                if not str(name).startswith("connect.")
            }
        case list():
            return [_without(each) for each in avro]
        case _:
            return avro
