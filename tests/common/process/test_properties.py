"""Properties files are read as `java.util.Properties.load` reads them.

`JAVA` was recorded with Java 17; where `java` is installed, Java itself is asked again, for these
texts and for many made at random.
"""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from common.process.properties import parse_properties, read_layers, read_properties

JAVA: list[tuple[str, dict[str, str] | None]] = [
    ("num.partitions=3", {"num.partitions": "3"}),
    ("a=1\nb : 2\r\nc 3\r d=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
    ("# no\n! no\n\n  \n\f\nkey", {"key": ""}),
    ("password=secret ", {"password": "secret "}),
    ("  a : b\t\f ", {"a": "b\t\f "}),
    ("a=1\u2028b=2\x85c=3\x0bd=4\x1ce", {"a": "1\u2028b=2\x85c=3\x0bd=4\x1ce"}),
    ("a=1\fb=2", {"a": "1\fb=2"}),
    ("\xa0a=\xa0b", {"\xa0a": "\xa0b"}),
    ("a\xa0b", {"a\xa0b": ""}),
    ("a=\\uD83D\\uDE00 ", {"a": "😀 "}),
    ("a=😀", {"a": "😀"}),
    ("a=\\u00e9\\u00E9", {"a": "éé"}),
    ("a=\\u00zz", None),
    ("a=\\u12", None),
    ("\\u=1", None),
    ("a=\\u00e\n9", None),
    ("a=\\\\u00zz", {"a": "\\u00zz"}),
    ("a=1,\\\n   2,\\\n\t3", {"a": "1,2,3"}),
    ("a=1,\\\r\n\\\r\n2", {"a": "1,2"}),
    ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
    ("a=1\\\n#b=2", {"a": "1#b=2"}),
    ("\\\n#b=2", {}),
    ("\\\n\nb=2", {"b": "2"}),
    ("# a comment \\\nb=2", {"b": "2"}),
    ("a=\\", {"a": ""}),
    ("\\", {"": ""}),
    ("\\\n", {"": ""}),
    ("\\\r\n", {}),
    ("\\\n ", {}),
    ("a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
    ("a=x\\\\\\\nb=y", {"a": "x\\b=y"}),
    ("a\\ b\\:c=\\t\\u00e9\\q\\f\\r\\n\\\\", {"a b:c": "\té" + "q\f\r\n\\"}),
    ("log.dir=/a\\=b\\\\c", {"log.dir": "/a=b\\c"}),
    ("a=1\na=2", {"a": "2"}),
    ("a==b", {"a": "=b"}),
    ("a = = b", {"a": "= b"}),
    ("a:=b", {"a": "=b"}),
    ("= b", {"": "b"}),
    ("empty=", {"empty": ""}),
    ("\ufeffa=1", {"\ufeffa": "1"}),
    ("a=\0", {"a": "\0"}),
]
HALVES = ["a=\\ud83d", "a=\\ude00\\ud83d", "\\ud83d=1", "a=\\ud83dx\\ude00"]


@pytest.mark.parametrize(("text", "properties"), JAVA)
def test_properties_are_read_as_java_reads_them(
    text: str, properties: dict[str, str] | None
) -> None:
    if properties is None:
        with pytest.raises(ValueError, match=r"malformed \\u escape"):
            parse_properties(text)
    else:
        assert parse_properties(text) == properties


@pytest.mark.parametrize("text", HALVES)
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has half a character"):
        parse_properties(text)


def test_a_refusal_shows_no_value() -> None:
    with pytest.raises(ValueError, match="the value of 'password'") as refused:
        parse_properties("password=secret\\u00zz")
    assert "secret" not in str(refused.value)


def test_a_file_of_other_bytes_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_bytes(b"a=\xff")
    with pytest.raises(ValueError, match="no text in UTF-8, see byte 2"):
        read_properties(file)


def test_of_a_file_variables_and_overrides_the_last_one_wins(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("a=1\nb=1\nc=1")
    found = read_layers(file, {"b": "2", "c": "2"}, ["c=3 ", "d=x=y"])
    assert found == {"a": "1", "b": "2", "c": "3 ", "d": "x=y"}


@pytest.mark.parametrize(
    ("name", "overrides", "reason"),
    [("none", [], "cannot read .*none"), ("a.properties", ["c"], "--override takes name=value")],
)
def test_layers_that_cannot_be_read_are_refused(
    tmp_path: Path, name: str, overrides: list[str], reason: str
) -> None:
    (tmp_path / "a.properties").write_text("a=1")
    with pytest.raises(ValueError, match=reason):
        read_layers(tmp_path / name, {}, overrides)


def random_text(source: random.Random) -> str:
    pieces = ["\\", "\\", "\n", "\r", " ", "\t", "\f", "=", ":", "#", "!", "a", "b", "u", "\\u00e9"]
    pieces += ["\\ud83d\\ude00", "\\u12", "\u2028", "\x85", "\xa0", "\\\n", "\\\r\n", "é", "😀"]
    return "".join(source.choices(pieces, k=source.randrange(12)))


@pytest.mark.interop
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
def test_java_reads_the_same() -> None:
    source = random.Random(1)
    texts = [text for text, _ in JAVA] + HALVES + [random_text(source) for _ in range(20_000)]
    program = Path(__file__).with_name("ReadProperties.java")
    result = subprocess.run(
        ["java", str(program)],
        input="\n".join(text.encode("utf-16-be").hex() for text in texts),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = result.stdout.split("\n")[:-1]
    assert len(answers) == len(texts)
    pairs = [(text, ours(text), answer) for text, answer in zip(texts, answers, strict=True)]
    assert [
        (text, found, answer) for text, found, answer in pairs if found not in {answer, HALF}
    ] == []


HALF = ""
"""What Java may answer in any way: text with half a character is refused here."""


def ours(text: str) -> str:
    """Return the properties as the Java program writes them."""
    try:
        properties = parse_properties(text)
    except ValueError as error:
        return HALF if "half a character" in str(error) else "!"
    items = sorted((encoded(key), encoded(value)) for key, value in properties.items())
    return f"{' '.join(f'{key}={value}' for key, value in items)} ".lstrip()


def encoded(text: str) -> str:
    return text.encode("utf-16-be").hex()
