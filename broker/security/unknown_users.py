"""What SCRAM answers about a user that does not exist: a salt and iterations as those of others.

A server that refuses an unknown user at once tells strangers which users exist (RFC 5802, section
9). So an unknown user gets a salt too, always the same one, that follows from a secret of the
cluster: all brokers know it, also after a restart, and no client can compute it. Its shape is that
of a known user: the number of iterations, the salt's length, and whether the salt is a text as
Kafka's own tools make them. Each shape is as frequent among unknown users as among known ones. An
unknown user nearly always keeps its shape when users come and go.
"""

import hashlib
import hmac
from collections.abc import Mapping
from math import log
from typing import NamedTuple

from common.credentials.scram import MIN_ITERATIONS, ScramCredential

TEXT_BITS = 130
"""Kafka's tools make a salt of so many random bits, and write the number with the base 36."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
TEXT_BYTES = range(20, 27)


class Shape(NamedTuple):
    """The part of an answer that many users have in common."""

    iterations: int = MIN_ITERATIONS
    salt_bytes: int = 0
    """0 for a salt that is a text of Kafka's tools: its length follows from its value."""


def shape_of(credential: ScramCredential) -> Shape:
    """Return the shape of a known user's answer."""
    salt = credential.salt
    is_text = len(salt) in TEXT_BYTES and set(salt) <= set(DIGITS.encode())
    return Shape(credential.iterations, 0 if is_text else len(salt))


def stand_in(
    secret: bytes, known: Mapping[Shape, int], mechanism: str, user: str
) -> tuple[bytes, int]:
    """Return the salt and the iterations of an unknown user; `known` counts those that exist."""
    key = hmac.digest(secret, f"{mechanism}:{user}".encode(), "sha256")
    shape = max(known, key=lambda each: _rank(key, each, known[each]), default=Shape())
    source = hashlib.shake_256(key + b"salt")
    if shape.salt_bytes:
        return source.digest(shape.salt_bytes), shape.iterations
    bits = int.from_bytes(source.digest(TEXT_BITS // 8 + 1)) >> (8 - TEXT_BITS % 8)
    return _text_of(bits).encode(), shape.iterations


def _rank(key: bytes, shape: Shape, count: int) -> float:
    """Return a rank that is the largest of all as often as the shape is among known users.

    This is weighted rendezvous hashing: another shape, or another count, changes few choices.
    """
    drawn = int.from_bytes(hmac.digest(key, repr(tuple(shape)).encode(), "sha256")[:7])
    return count / -log((drawn + 1) / (2**56 + 1))


def _text_of(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, len(DIGITS))
        text = DIGITS[digit] + text
    return text or "0"
