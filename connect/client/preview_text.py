"""A preview as a text: each record, and below it what each step made of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from connect.client.tables import cell, table

_PARTS = (
    "topic",
    "partition",
    "timestamp",
    "key",
    "key_schema",
    "value",
    "value_schema",
    "headers",
)
_ALWAYS = ("topic", "key", "value")


def preview_text(said: Mapping[str, Any]) -> str:
    """Give the lines of a preview."""
    blocks = [_record(number, each) for number, each in enumerate(said["records"], 1)]
    if "error" in said:
        blocks.append(f"failed: {_error(said['error'])}")
    count = len(said["records"])
    shown = "1 record" if count == 1 else f"{count} records"
    blocks.append(f"{shown}, nothing written: {said['ended']}")
    return "\n\n".join(blocks)


def _record(number: int, record: Mapping[str, Any]) -> str:
    rows = [("read", *row) for row in _parts(record["read"], _ALWAYS)]
    for step in record["steps"]:
        rows += [(step["step"], *row) for row in _step(step)]
    return f"record {number}: {record['outcome']}\n" + table(("STEP", "PART", "VALUE"), rows)


def _step(step: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    if "error" in step:
        yield "failed", _error(step["error"])
    elif "left_out" in step:
        yield "left out", step["left_out"]
    elif step.get("applied") is False:
        yield "left out", "its predicate does not hold"
    elif "changed" not in step:
        # What is filtered has no result, what is converted nothing it could be compared with.
        yield from _parts(step["result"], _ALWAYS) if "result" in step else [("filtered", None)]
    elif not step["changed"]:
        yield "unchanged", None
    else:
        yield from _parts(step["result"], step["changed"])


def _parts(shown: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, object]]:
    for name in _PARTS:
        if name in names and name in shown:
            yield name, _plain(shown[name])


def _plain(value: Any) -> object:
    """Take the text of bytes that are one."""
    is_text = isinstance(value, Mapping) and set(value) == {"text"}
    return value["text"] if is_text else value


def _error(error: Mapping[str, Any]) -> str:
    return cell(f"{error['class']}: {error['message']} ({error['stage']})")
