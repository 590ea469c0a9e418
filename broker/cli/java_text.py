"""Text as Kafka's tools print it: bytes as Java decodes UTF-8, and tables.

Java and Python replace malformed bytes in the same way, except for a surrogate (U+D800 to U+DFFF,
bytes ED A0 80 to ED BF BF), complete or truncated: Java inserts one replacement character for it,
Python one a byte. Random bytes such as a topic id contain one now and then.
"""

import codecs
from collections.abc import Iterable, Sequence
from typing import Final

_HANDLER: Final = "millstream-java-replace"
_REPLACEMENT: Final = "\ufffd"
_SURROGATE, _SECOND, _CONTINUATION = 0xED, range(0xA0, 0xC0), range(0x80, 0xC0)


def java_text(data: bytes) -> str:
    """Decode bytes as Java does, with replacements."""
    return data.decode("utf-8", _HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data, start, end = error.object, error.start, error.end
    if data[start] == _SURROGATE and len(data) > start + 1 and data[start + 1] in _SECOND:
        is_whole = len(data) > start + 2 and data[start + 2] in _CONTINUATION
        end = start + (3 if is_whole else 2)
    return _REPLACEMENT, end


codecs.register_error(_HANDLER, _replace)


def table_text(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the lines of a table: columns as wide as their widest cell, separated by tabs."""
    lines = [headers, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "\n".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
