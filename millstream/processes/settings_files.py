"""Writes Kafka's settings files: properties, and logins in them (`sasl.jaas.config`).

The programs read them (`common.process.properties`, `common.credentials.jaas`).
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add a file to an OSError of the block that names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(file)
        raise


def properties_text(properties: Mapping[str, str]) -> str:
    """Write a properties file, as `parse_properties` and Java read it."""
    return "".join(
        f"{_escaped(name, ' =:')}={_escaped(value)}\n" for name, value in properties.items()
    )


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read, at no moment anybody else."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with naming(file), os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)


def _escaped(text: str, more: str = "") -> str:
    named = {letter: f"\\{name}" for name, letter in _NAMED.items()} | {"\\": "\\\\"}
    found = "".join(named.get(each) or (f"\\{each}" if each in more else each) for each in text)
    # Blanks at the beginning would be taken for what is between name and value.
    return f"\\{found}" if found.startswith((" ", "#", "!")) else found


def login_text(module: str, **options: str) -> str:
    """Write one entry, as `parse_jaas` reads it."""
    said = " ".join(f"{name}={_in_quotes(value)}" for name, value in options.items())
    return f"{module} required {said};"


def _in_quotes(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
