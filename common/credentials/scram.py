"""SCRAM credentials (RFC 5802, section 3): what a server keeps in place of a password."""

import hashlib
import hmac
from hashlib import pbkdf2_hmac
from typing import NamedTuple

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16_384
"""Kafka's bounds: fewer are too weak, more cost a client too much."""


class ScramMechanism(NamedTuple):
    """One member of the family. `number` is its number in Kafka's protocol and records."""

    name: str
    number: int
    hash_name: str


SCRAM_SHA_256 = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512 = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
SCRAM_MECHANISMS = {mechanism.number: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)}


class ScramCredential(NamedTuple):
    """What verifies a client, and proves the server to it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """Return `SaltedPassword`: a client sends this, and never the password, to store it."""
    return pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_from(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Make a credential of a salted password."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    return ScramCredential(
        salt=salt,
        stored_key=digest(mechanism, client_key),
        server_key=hmac.digest(salted, b"Server Key", mechanism.hash_name),
        iterations=iterations,
    )


def digest(mechanism: ScramMechanism, data: bytes) -> bytes:
    """Return the hash of `data`."""
    return hashlib.new(mechanism.hash_name, data).digest()
