"""What Java 17 makes of the same bytes: `new String(bytes, UTF_8)`, as printed by it."""

import pytest

from broker.cli.java_text import java_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", ""),
        ("41c3a4f09f9880", "A\u00e4\U0001f600"),
        ("f07fedbf", "\ufffd\x7f\ufffd"),
        ("f5edbff7", "\ufffd\ufffd\ufffd"),
        ("eda08fe1f1", "\ufffd\ufffd\ufffd"),
        ("eda0ed", "\ufffd\ufffd"),
        ("f1edbf", "\ufffd\ufffd"),
        ("41eda0e0f4", "A\ufffd\ufffd\ufffd"),
        ("eda08041", "\ufffdA"),
        ("eda041", "\ufffdA"),
        ("ed9fbf", "\ud7ff"),
        ("ed", "\ufffd"),
    ],
)
def test_malformed_bytes_are_replaced_as_java_does(data: str, text: str) -> None:
    assert java_text(bytes.fromhex(data)) == text
