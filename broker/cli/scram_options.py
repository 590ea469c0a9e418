"""SCRAM credentials as tools take them.

`millstream configs` takes `SCRAM-SHA-256=[iterations=8192,password=secret]`, `millstream storage
format --add-scram` takes `SCRAM-SHA-256=[name=alice,password=secret]`, or with `saltedpassword` and
`salt` in base64.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Mapping

from broker.cli.arguments import ToolFailed
from common.credentials.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramMechanism,
)
from common.kafka.admin.scram import SALT_BYTES, NewCredential

MECHANISMS_BY_NAME = {mechanism.name: mechanism for mechanism in SCRAM_MECHANISMS.values()}
RandomBytes = Callable[[int], bytes]
_PASSWORD_LAST = re.compile(
    r"\[?(?:iterations=(?P<iterations>\d*),)?password=(?P<password>.*?)\]?", re.DOTALL
)
"""What kafka-configs reads: a password is everything to the end, with commas and signs."""


def parse_credential(text: str) -> dict[str, str]:
    """Read a credential of `configs --add-config`, as kafka-configs does; raises ToolFailed."""
    found = _PASSWORD_LAST.fullmatch(text.strip())
    if found is None:
        return parse_fields(text)
    return {name: value for name, value in found.groupdict().items() if value is not None}


def parse_fields(text: str) -> dict[str, str]:
    """Split `name=value,name=value`; raises ToolFailed."""
    fields: dict[str, str] = {}
    for part in text.strip().removeprefix("[").removesuffix("]").split(","):
        name, separator, value = part.partition("=")
        if not separator or name.strip() in fields:
            raise ToolFailed(f"expected NAME=VALUE,... for a SCRAM credential, at {name.strip()!r}")
        fields[name.strip()] = value
    return fields


def new_credential(
    mechanism: ScramMechanism, fields: Mapping[str, str], random_bytes: RandomBytes
) -> NewCredential:
    """Make a credential of its fields; raises ToolFailed, never with a password in it."""
    unknown = fields.keys() - {"name", "password", "iterations", "salt", "saltedpassword"}
    if unknown:
        raise ToolFailed(f"unknown part of a SCRAM credential: {', '.join(sorted(unknown))}")
    iterations = _iterations(fields.get("iterations", str(MIN_ITERATIONS)))
    salt = _base64("salt", fields["salt"]) if "salt" in fields else random_bytes(SALT_BYTES)
    if ("password" in fields) == ("saltedpassword" in fields):
        raise ToolFailed("a SCRAM credential needs either password or saltedpassword")
    if "password" in fields:
        if not fields["password"]:
            raise ToolFailed("the password of a SCRAM credential is empty")
        return NewCredential.of(mechanism, fields["password"], iterations, salt)
    if "salt" not in fields:
        raise ToolFailed("a salted password needs the salt it was made with")
    salted = _base64("saltedpassword", fields["saltedpassword"])
    return NewCredential(mechanism, iterations, salt, salted)


def _iterations(text: str) -> int:
    if not text.strip().isdecimal() or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise ToolFailed(f"iterations must be between {MIN_ITERATIONS} and {MAX_ITERATIONS}")
    return int(text)


def _base64(name: str, text: str) -> bytes:
    try:
        return b64decode(text.strip('"'), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed(f"{name} is not base64") from error
