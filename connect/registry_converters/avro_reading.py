"""Decide whether values of one Avro schema can be read with another. Does no IO."""

import json

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.errors import AvroException
from avro.schema import parse


def why_unreadable(writer: str, reader: str) -> str | None:
    """Return why values of the writer's schema cannot be read; None if they can."""
    try:
        written, read = parse(_bare(writer)), parse(_bare(reader))
        checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        found = checker.get_compatibility(read, written)
    except (AvroException, RecursionError, ValueError, TypeError, KeyError) as error:
        return f"the schemas cannot be compared: {error}"
    if found.compatibility is SchemaCompatibilityType.compatible:
        return None
    return "; ".join(sorted(found.messages)) or "they are incompatible"


def _bare(text: str) -> str:
    """Remove Connect's own details, whose defaults the checker's parser would refuse."""
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
