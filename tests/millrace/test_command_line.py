"""The `millrace` command: help by group and topic, completion, suggestions."""

import shutil
import subprocess
from pathlib import Path

import pytest

from millrace.cli import COMMANDS, SERVICES, main
from millrace.help_text import TOPICS, completion, suggestion


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
    assert texts.pop()[1].startswith("millrace ")


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
        (["xyzzy"], "millrace --help"),
    ],
)
def test_a_slip_has_a_suggestion(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = said(arguments, capsys)
    assert (status, hint in text) == (2, True), text


def test_what_is_far_off_has_none() -> None:
    assert suggestion("xyzzy", COMMANDS) == ""


def completed(line: str, folder: Path) -> list[str]:
    """Return what bash offers behind a line."""
    script = folder / "completion"
    script.write_text(completion("bash", COMMANDS, SERVICES))
    words = line.split(" ")
    ask = (
        f"source {script}; COMP_WORDS=({' '.join(map(repr, words))}); "
        f"COMP_CWORD={len(words) - 1}; _millrace; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    found = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    return found.stdout.split()


def test_bash_completes_commands_topics_services_and_flags(tmp_path: Path) -> None:
    assert completed("millrace stat", tmp_path) == ["status"]
    assert completed("millrace help see", tmp_path) == ["seeds"]
    services = completed("millrace service ord", tmp_path)
    assert sorted(services) == ["order-details", "orders"]
    assert completed("millrace completion z", tmp_path) == ["zsh"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_of_their_shells(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, script = said(["completion", shell], capsys)
    assert status == 0
    assert "{" not in script or "{{" not in script
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([shell, "-n", str(file)], check=True)
