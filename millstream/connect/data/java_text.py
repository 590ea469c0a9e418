"""How Java writes floating-point numbers, so that texts and JSON are the same bytes as Kafka's.

The digits are the fewest that give the number back (as in Java from 19 on); what is between 0.001
and 10,000,000 is written plainly, everything else with an exponent, always with a decimal point.
"""

import math
import struct

_FLOAT32 = struct.Struct("f")
_MIN_NORMAL_FLOAT32 = 2.0**-126
_MAX_FLOAT32 = 3.4028235677973366e38  # from here on a number rounds to infinity in 32 bits


def float32(value: float) -> float:
    """Return the nearest number that 32 bits hold, an infinity beyond the largest."""
    if abs(value) >= _MAX_FLOAT32 or value != value:
        return math.copysign(math.inf, value) if value == value else value
    rounded: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    return rounded


def java_double(value: float) -> str:
    """Write a number as Double.toString does."""
    return _java_text(value, repr(value))


def java_float(value: float) -> str:
    """Write a number as Float.toString does: with the digits that 32 bits need."""
    value = float32(value)
    if not math.isfinite(value):
        return java_double(value)
    # Six digits are never too many but for the tiniest numbers, and none needs more than nine.
    fewest = 6 if abs(value) >= _MIN_NORMAL_FLOAT32 else 1
    digits = next(
        text
        for digits in range(fewest, 10)
        if float32(float(text := f"{value:.{digits}g}")) == value
    )
    return _java_text(value, digits)


def _java_text(value: float, digits: str) -> str:
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = digits.lstrip("-").partition("e")
    if len(mantissa) == 1:
        # Java writes two digits, and then the two that are nearest: 4.9E-324, not 5.0E-324.
        mantissa, _, power = f"{abs(value):.1e}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    significant = (whole + fraction).lstrip("0")
    point = len(whole) + int(power or 0) - (len(whole + fraction) - len(significant))
    significant = significant.rstrip("0") or "0"
    if -3 < point <= 7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{significant}"
        padded = significant.ljust(point, "0")
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{point - 1}"
