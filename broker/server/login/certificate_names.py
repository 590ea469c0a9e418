"""The subject of a certificate as the text that Kafka makes a principal of.

It is what Java's `X500Principal.getName()` returns, RFC 2253 with two additions: `=` and `#` are
escaped everywhere, and an attribute without a short name there is its number with its encoded
value, `1.2.840.113549.1.9.1=#1605...` for a mail address. The module `ssl` gives names and values
only, not their encoding, so the certificate itself is read (DER, ITU-T X.690).
"""

from collections.abc import Iterator
from typing import NamedTuple

SHORT_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
TEXTS = {
    0x0C: "utf-8",
    0x13: "ascii",  # PrintableString
    0x14: "latin-1",  # T61String
    0x16: "ascii",  # IA5String
    0x1B: "latin-1",  # GeneralString
    0x1C: "utf-32-be",  # UniversalString
    0x1E: "utf-16-be",  # BMPString
}
"""The encodings of strings by their tags."""
VERSION_TAG = 0xA0
SUBJECT_PLACE = 4
"""Behind serial number, algorithm, issuer and validity; a version may be before them."""
SPECIAL = frozenset(',=+<>#;"\\')
SPACES = " \r"


class _Element(NamedTuple):
    """One value: its tag, its content, and the whole of it."""

    tag: int
    content: bytes
    encoded: bytes


def subject_text(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, the most exact name first; raises ValueError."""
    (whole,) = _elements(certificate)
    signed, *_ = _elements(whole.content)
    parts = [each for each in _elements(signed.content) if each.tag != VERSION_TAG]
    if len(parts) <= SUBJECT_PLACE:
        raise ValueError("the certificate has no subject")
    relatives = [_relative(each.content) for each in _elements(parts[SUBJECT_PLACE].content)]
    return ",".join(reversed(relatives))


def _relative(content: bytes) -> str:
    return "+".join(_attribute(each.content) for each in _elements(content))


def _attribute(content: bytes) -> str:
    kind, value = _elements(content)
    number = _number(kind.content)
    encoding = TEXTS.get(value.tag)
    if number not in SHORT_NAMES or encoding is None:
        return f"{SHORT_NAMES.get(number, number)}=#{value.encoded.hex()}"
    return f"{SHORT_NAMES[number]}={_escaped(value.content.decode(encoding))}"


def _number(content: bytes) -> str:
    """Return an object identifier: seven bits a byte, the first two numbers in one."""
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("an attribute has no kind")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(data: bytes) -> Iterator[_Element]:
    """Split DER values that follow each other; raises ValueError."""
    position = 0
    while position < len(data):
        begin = position
        tag, size, position = data[begin], *_size(data, begin + 1)
        if tag & 0x1F == 0x1F or size > len(data) - position:
            raise ValueError("the certificate is damaged")
        position += size
        yield _Element(tag, data[position - size : position], data[begin:position])


def _size(data: bytes, position: int) -> tuple[int, int]:
    """Return a size and the position behind it."""
    first = int.from_bytes(data[position : position + 1], "big")
    if first < 0x80:
        return first, position + 1
    end = position + 1 + (first & 0x7F)
    if end - position > 5 or end > len(data):
        raise ValueError("the certificate is damaged")
    return int.from_bytes(data[position + 1 : end], "big"), end


def _escaped(value: str) -> str:
    begin = len(value) - len(value.lstrip(SPACES))
    end = len(value.rstrip(SPACES))
    return "".join(
        f"\\{letter}"
        if letter in SPECIAL or not begin <= position < end
        else ("\\00" if letter == "\0" else letter)
        for position, letter in enumerate(value)
    )
