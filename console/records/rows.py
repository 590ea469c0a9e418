"""A record as a row of the page: every part is a text, with its format and what was wrong. Pure.

Offsets and times are texts in JSON, because a browser rounds numbers beyond 2^53. A text that is
long is cut; its row says so, and the whole record is read on demand.
"""

from typing import Any, Final, NamedTuple

from console.records.batches import MARKER, RawRecord, marker_of

PREVIEW_CHARACTERS: Final = 2_000
MAX_HEADERS: Final = 100


class Part(NamedTuple):
    """The key, the value or a header of a record."""

    text: str
    kind: str
    """How the bytes were read: json, text, hex, avro, jsonschema, protobuf, null, large, hidden."""
    size_bytes: int = 0
    note: str = ""
    """The schema, or why the bytes cannot be read as what they seem to be."""
    is_cut: bool = False

    @property
    def is_json(self) -> bool:
        """Whether the text is JSON."""
        return self.kind in ("json", "avro", "jsonschema", "protobuf")

    def cut(self, limit: int = PREVIEW_CHARACTERS) -> "Part":
        """Return the part with at most so many characters."""
        if len(self.text) <= limit:
            return self
        return self._replace(text=self.text[:limit], is_cut=True)

    def as_json(self) -> dict[str, Any]:
        """Return the part as it is sent to the page."""
        return {
            "text": self.text,
            "kind": self.kind,
            "size": self.size_bytes,
            "note": self.note,
            "is_cut": self.is_cut,
        }


NULL: Final = Part("", "null")


class Row(NamedTuple):
    """One record, ready to be shown."""

    partition: int
    offset: int
    timestamp_ms: int
    key: Part
    value: Part
    headers: tuple[tuple[str, Part], ...] = ()
    state: str = ""
    producer_id: int = -1

    def cut(self) -> "Row":
        """Return the row with long texts cut."""
        headers = tuple((name[:PREVIEW_CHARACTERS], part.cut()) for name, part in self.headers)
        return self._replace(key=self.key.cut(), value=self.value.cut(), headers=headers)

    def as_json(self) -> dict[str, Any]:
        """Return the row as it is sent to the page."""
        return {
            "partition": self.partition,
            "offset": str(self.offset),
            "timestamp": str(self.timestamp_ms),
            "key": self.key.as_json(),
            "value": self.value.as_json(),
            "headers": [{"name": name, **part.as_json()} for name, part in self.headers],
            "state": self.state,
            "producer_id": str(self.producer_id) if self.producer_id >= 0 else "",
        }


def marker_row(record: RawRecord) -> Row:
    """Return the row of a control record."""
    text = f"{marker_of(record)} of producer {record.producer_id}"
    return Row(
        record.partition,
        record.offset,
        record.timestamp_ms,
        NULL,
        Part(text, MARKER, len(record.value or b"")),
        (),
        MARKER,
        record.producer_id,
    )
