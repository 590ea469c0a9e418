"""The settings of a client metrics subscription (KIP-714), and their check."""

from collections.abc import Mapping
from typing import Any, Final

import re2

from common.kafka.errors import ErrorCode, KafkaError

METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
MIN_INTERVAL_MS, MAX_INTERVAL_MS = 100, 3_600_000
DEFAULT_INTERVAL_MS: Final = 300_000
SELECTORS = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
MAX_PATTERN_BYTES: Final = 4_096
MAX_PROGRAM_BYTES: Final = 1 << 20
"""RE2's memory for one pattern. RE2, because clients choose the texts that are matched."""


def validate_client_metrics(name: str, wanted: Mapping[str, str]) -> None:
    """Raise KafkaError if a subscription cannot have these settings."""
    if name == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key, text in wanted.items():
        if key == INTERVAL:
            parse_interval(text)
        elif key == MATCH:
            parse_match(text)
        elif key == METRICS:
            parse_list(key, text)
        else:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}"
            )


def parse_interval(text: str) -> int:
    """Return the interval in milliseconds; raise KafkaError."""
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(2**31))):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {text} for configuration {INTERVAL}: Not a number of type INT",
        )
    value = int(text)
    if not MIN_INTERVAL_MS <= value <= MAX_INTERVAL_MS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {text} for {INTERVAL}, interval must be between "
            f"{MIN_INTERVAL_MS} and {MAX_INTERVAL_MS} (1 hour)",
        )
    return value


def parse_list(key: str, text: str) -> list[str]:
    """Return the entries of a list; raise KafkaError(INVALID_CONFIG) if one is empty or twice."""
    if not text.strip():
        return []
    entries = [entry.strip() for entry in text.split(",")]
    if "" in entries:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Configuration '{key}' values must not be empty.",
        )
    if len(set(entries)) < len(entries):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Configuration '{key}' values must not be duplicated."
        )
    return entries


def parse_match(text: str) -> dict[str, Any]:
    """Return a compiled pattern for each selector; raise KafkaError(INVALID_CONFIG)."""
    options = re2.Options()
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    patterns = {}
    for entry in parse_list(MATCH, text):
        selector, _, pattern = entry.partition("=")
        selector, pattern = selector.strip(), pattern.strip()
        is_known = selector in SELECTORS and pattern and "=" not in pattern
        try:
            if not is_known or len(pattern.encode()) > MAX_PATTERN_BYTES:
                raise re2.error(entry)
            patterns[selector] = re2.compile(pattern, options)
        except re2.error as error:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}"
            ) from error
    return patterns
