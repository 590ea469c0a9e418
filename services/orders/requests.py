"""How a request for an order is read and checked. Pure.

A request is read strictly and completely: every wrong field gets its own entry, by JSON pointer
(RFC 6901), and an unknown field is wrong too. Amounts may be JSON numbers or strings; they
are read as decimals either way and never pass through a float.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from common.process.json_text import NotJsonError, read_json

LINES_MAX = 5000
QUANTITY_MAX = 10**9
TEXT_MAX = 200
_AHEAD_MAX = timedelta(minutes=5)
_DIGITS_MAX = 40
_AMOUNT_LIMIT = Decimal(10) ** 14
_SCALE = Decimal("0.0001")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)

FieldError = dict[str, str]


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """A valid request."""

    customer_id: str
    country: str | None
    lines: list[dict[str, Any]]
    total: Decimal
    ordered_at: datetime


class MalformedJsonError(ValueError):
    """The body is not JSON."""


def parse_json(body: bytes) -> Any:
    """Return the JSON with every fraction as Decimal; NaN for one that no Decimal holds."""
    try:
        return read_json(body, _to_fraction)
    except NotJsonError as error:
        raise MalformedJsonError(f"the body is not JSON: {error}") from error


def _to_fraction(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of 20 digits
        return Decimal("NaN")


def digest(body: Any) -> str:
    """Return a digest that is equal for equal JSON, however it is written."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class _Reader:
    """Reads one request and collects what is wrong with it."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def refuse(self, pointer: str, detail: str) -> None:
        self.errors.append({"pointer": "#" + pointer, "detail": detail})

    def refuse_unknown(self, pointer: str, fields: dict[str, Any], known: set[str]) -> None:
        for name in fields:
            if name not in known:
                escaped = name.replace("~", "~0").replace("/", "~1")
                self.refuse(f"{pointer}/{escaped}", "unknown field")

    def text(self, pointer: str, value: Any) -> str:
        if value is None:
            self.refuse(pointer, "is required")
        elif not isinstance(value, str):
            self.refuse(pointer, "must be a string")
        elif not value.strip():
            self.refuse(pointer, "must not be empty")
        elif len(value) > TEXT_MAX:
            self.refuse(pointer, f"must not be longer than {TEXT_MAX} characters")
        elif not value.isprintable():
            self.refuse(pointer, "must be printable text")
        else:
            return value
        return ""

    def quantity(self, pointer: str, value: Any) -> int:
        if value is None:
            self.refuse(pointer, "is required")
        elif (value := _to_integer(value)) is None:
            self.refuse(pointer, "must be a whole number")
        elif not 0 < value <= QUANTITY_MAX:
            self.refuse(pointer, f"must be greater than 0 and at most {QUANTITY_MAX}")
        else:
            return value
        return 0

    def amount(self, pointer: str, value: Any) -> Decimal:
        amount = _to_decimal(value)
        if value is None:
            self.refuse(pointer, "is required")
        elif amount is None:
            self.refuse(pointer, "must be a decimal number")
        elif amount < 0:
            self.refuse(pointer, "must not be negative")
        elif amount >= _AMOUNT_LIMIT:
            self.refuse(pointer, "must have at most 14 digits before the point")
        elif amount != amount.quantize(_SCALE):
            self.refuse(pointer, "must have at most 4 decimal places")
        else:
            return amount.quantize(_SCALE)
        return Decimal(0)

    def ordered_at(self, pointer: str, value: Any, now: datetime) -> datetime:
        if value is None:
            return now
        moment = _to_datetime(value)
        if moment is None:
            self.refuse(pointer, "must be an RFC 3339 date and time with a time zone")
        elif moment > now + _AHEAD_MAX:
            self.refuse(pointer, "must be at most 5 minutes ahead")
        elif moment < _EARLIEST:
            self.refuse(pointer, "must not be before 1970")
        else:
            return moment
        return now

    def lines(self, pointer: str, value: Any) -> list[dict[str, Any]]:
        if value is None:
            self.refuse(pointer, "is required")
        elif not isinstance(value, list):
            self.refuse(pointer, "must be a list")
        elif not 0 < len(value) <= LINES_MAX:
            self.refuse(pointer, f"must have between 1 and {LINES_MAX} lines")
        else:
            return [self._line(f"{pointer}/{number}", line) for number, line in enumerate(value)]
        return []

    def _line(self, pointer: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.refuse(pointer, "must be an object")
            return {"product_id": "", "quantity": 0, "unit_price": Decimal(0)}
        self.refuse_unknown(pointer, value, {"product_id", "quantity", "unit_price"})
        return {
            "product_id": self.text(f"{pointer}/product_id", value.get("product_id")),
            "quantity": self.quantity(f"{pointer}/quantity", value.get("quantity")),
            "unit_price": self.amount(f"{pointer}/unit_price", value.get("unit_price")),
        }


def parse_order(body: Any, now: datetime) -> OrderRequest | list[FieldError]:
    """Return the request, or everything that is wrong with it."""
    reader = _Reader()
    if not isinstance(body, dict):
        reader.refuse("", "must be an object")
        return reader.errors
    known = {"customer_id", "country", "lines", "total", "ordered_at"}
    reader.refuse_unknown("", body, known)
    country = body.get("country")
    request = OrderRequest(
        customer_id=reader.text("/customer_id", body.get("customer_id")),
        country=None if country is None else reader.text("/country", country),
        lines=reader.lines("/lines", body.get("lines")),
        total=Decimal(0),
        ordered_at=reader.ordered_at("/ordered_at", body.get("ordered_at"), now),
    )
    if reader.errors:
        return reader.errors
    total = _total(request.lines)
    if total >= _AMOUNT_LIMIT:
        reader.refuse("/lines", "the total must have at most 14 digits before the point")
    if body.get("total") is not None:
        # A wrong total is for the order details check to find; here it only has to be an amount.
        total = reader.amount("/total", body["total"])
    if reader.errors:
        return reader.errors
    return OrderRequest(
        request.customer_id, request.country, request.lines, total, request.ordered_at
    )


def _total(lines: list[dict[str, Any]]) -> Decimal:
    return sum((line["quantity"] * line["unit_price"] for line in lines), Decimal("0.0000"))


def _to_integer(value: Any) -> int | None:
    """Return a whole number; 2.0 is one too, as JSON Schema counts."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Decimal) and abs(value.adjusted()) < _DIGITS_MAX:
        return int(value) if value == value.to_integral_value() else None
    return value if isinstance(value, int) else None


def _to_decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        amount = Decimal(value)
    except InvalidOperation:
        return None
    # Digits without end would make the checks that follow expensive.
    if (
        not amount.is_finite()
        or abs(amount.adjusted()) > _DIGITS_MAX
        or len(amount.as_tuple().digits) > _DIGITS_MAX
    ):
        return None
    return amount


def _to_datetime(value: Any) -> datetime | None:
    if not isinstance(value, str) or len(value) < 20 or value[10] not in "Tt ":
        return None
    try:
        moment = datetime.fromisoformat(value)
        return None if moment.tzinfo is None else moment.astimezone(UTC)
    # OverflowError: in UTC it is before the year 1, or after 9999.
    except (ValueError, OverflowError):
        return None
