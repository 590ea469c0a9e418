"""Tables as Kafka's tools print them: columns as wide as their widest cell, separated by tabs."""

from collections.abc import Iterable, Sequence


def table_text(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the lines of a table, each cell padded on the right."""
    lines = [headers, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "\n".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
