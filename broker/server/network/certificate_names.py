"""The subject of a client's certificate as the text that Kafka makes a principal of (RFC 2253)."""

from collections.abc import Iterable

SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
SPECIAL = frozenset(',+"\\<>;')
Name = Iterable[Iterable[tuple[str, str]]]
"""As `ssl.SSLSocket.getpeercert` gives it: the relative names, the most general one first."""


def subject_text(subject: Name) -> str:
    """Return the subject, the most exact name first, as Java's X500Principal writes it.

    Raises ValueError for an attribute that RFC 2253 has no short name for.
    """
    return ",".join(
        "+".join(f"{_short(kind)}={_escaped(value)}" for kind, value in relative)
        for relative in reversed(list(subject))
    )


def _short(kind: str) -> str:
    if kind not in SHORT_NAMES:
        raise ValueError(f"the certificate's subject has an attribute {kind}")
    return SHORT_NAMES[kind]


def _escaped(value: str) -> str:
    escaped = "".join(f"\\{letter}" if letter in SPECIAL else letter for letter in value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if escaped.endswith(" ") and len(escaped) > 1:
        escaped = f"{escaped[:-1]}\\ "
    return escaped
