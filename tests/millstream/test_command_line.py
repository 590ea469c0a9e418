"""The `millstream` command: help by group and topic, suggestions."""

import pytest

from common.process.command_parser import suggestion
from millstream.cli.commands import COMMANDS, main
from millstream.cli.help_text import TOPICS


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_commands_are_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = said(["--help"], capsys)
    assert status == 0
    assert text.index("Kafka on this machine:") < text.index("Servers:")
    assert all(f"  {command} " in text for command in COMMANDS)


def test_the_version_is_said_in_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    texts = {said([each], capsys) for each in ("--version", "-V", "version")}
    assert len(texts) == 1
    assert texts.pop()[1].startswith("millstream ")


@pytest.mark.parametrize("topic", TOPICS)
def test_topics_are_explained(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(["help", topic], capsys) == (0, TOPICS[topic])


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["topcs"], "did you mean topics"),
        (["staus"], "did you mean status"),
        (["help", "seed"], "did you mean seeds"),
        (["service", "order"], "did you mean orders"),
        (["service"], "there are"),
        (["completion", "tcsh"], "bash, zsh, fish"),
        (["xyzzy"], "millstream --help"),
    ],
)
def test_a_slip_has_a_suggestion(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = said(arguments, capsys)
    assert (status, hint in text) == (2, True), text


def test_what_is_far_off_has_none() -> None:
    assert suggestion("xyzzy", COMMANDS) == ""
