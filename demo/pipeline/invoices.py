"""Real orders from CSV files in the format of the Online Retail data set, plain or gzip.

Columns: InvoiceNo, StockCode, Description, Quantity, InvoiceDate, UnitPrice, CustomerID, Country.
Each InvoiceNo is one order, whose lines are the rows in the order of the file. `ordered_at` is the
earliest InvoiceDate, taken as UTC. Orders are sorted by (`ordered_at`, InvoiceNo). There is no
filter: the order service refuses rows that are not valid orders. Stock codes such as `12345AB` are
products with a stock of a million each; the catalogue lacks others (POST, BANK CHARGES).
"""

import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from demo.pipeline.orders import DemoOrder, Scenery

STOCK = 1_000_000
_PRODUCT_CODE = re.compile(r"[0-9]{5}[A-Za-z]*")
_COLUMNS = {
    "InvoiceNo",
    "StockCode",
    "Description",
    "Quantity",
    "InvoiceDate",
    "UnitPrice",
    "CustomerID",
    "Country",
}


class UnreadableOrdersError(Exception):
    """A file is missing or has a wrong format; the message names the file and the reason."""


@dataclass(slots=True)
class _Invoice:
    number: str
    customer_id: str | None
    country: str | None
    ordered_at: datetime
    lines: list[tuple[str, int, str]] = field(default_factory=list)

    def to_order(self) -> DemoOrder:
        return DemoOrder(
            self.number,
            self.customer_id,
            self.country,
            self.ordered_at.isoformat() + "Z",
            tuple(self.lines),
        )


def read_scenery(path: Path, limit: int | None) -> Scenery:
    """Read a file, or all CSV files of a folder sorted by name; keep the first `limit` orders."""
    invoices: dict[str, _Invoice] = {}
    catalogue: dict[str, tuple[str, int]] = {}
    for file in _files(path):
        try:
            for row in _rows(file):
                _add(row, invoices, catalogue)
        except (KeyError, ValueError, OSError, EOFError) as error:
            raise UnreadableOrdersError(f"{file}: {error}") from error
    in_order = sorted(invoices.values(), key=lambda invoice: (invoice.ordered_at, invoice.number))
    return Scenery([invoice.to_order() for invoice in in_order[:limit]], catalogue)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.endswith((".csv", ".csv.gz")))
    if not files:
        raise UnreadableOrdersError(f"{path}: no .csv or .csv.gz files")
    return files


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        binary = gzip.GzipFile(fileobj=raw) if is_gzip else raw
        with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
            reader = csv.DictReader(text)
            missing = _COLUMNS.difference(reader.fieldnames or ())
            if missing:
                raise ValueError(f"columns missing: {', '.join(sorted(missing))}")
            yield from reader


def _add(
    row: dict[str, str],
    invoices: dict[str, _Invoice],
    catalogue: dict[str, tuple[str, int]],
) -> None:
    number, code = row["InvoiceNo"], row["StockCode"]
    invoiced_at = datetime.fromisoformat(row["InvoiceDate"])
    invoice = invoices.get(number)
    if invoice is None:
        customer_id = row["CustomerID"].removesuffix(".0") or None
        invoice = _Invoice(number, customer_id, row["Country"] or None, invoiced_at)
        invoices[number] = invoice
    invoice.ordered_at = min(invoice.ordered_at, invoiced_at)
    invoice.lines.append((code, int(row["Quantity"]), row["UnitPrice"]))
    if code not in catalogue and _PRODUCT_CODE.fullmatch(code):
        catalogue[code] = (row["Description"].strip() or code, STOCK)
