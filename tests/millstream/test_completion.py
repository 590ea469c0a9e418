"""The completion scripts, run by the shells that they are for."""

import io
import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from time import monotonic

import pytest

from millstream.cli.commands import COMMANDS, main
from millstream.cli.help_text import COMPLETIONS, TOPICS

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""The scripts call `millstream` for the flags of a command."""
PATIENCE_SECONDS = 20.0


def in_bash(line: str, script: Path) -> list[str]:
    """Return the words that bash offers behind a line."""
    words = line.split(" ")
    ask = (
        f"source {script}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); "
        f"COMP_CWORD={len(words) - 1}; _millstream; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    return _printed(["bash", "-c", ask], script.parent)


def in_fish(line: str, script: Path) -> list[str]:
    """Return the words that fish offers behind a line."""
    ask = f"source {script}; complete -C {shlex.quote(line)}"
    return _printed(["fish", "--no-config", "-c", ask], script.parent)


def in_zsh(line: str, script: Path) -> list[str]:
    """Return the words that zsh offers: it completes only at a terminal, so it is given one.

    A function in the place of `compadd` collects the words that match; the key Ctrl-T completes.
    """
    shell, terminal = pty.openpty()
    lines = [
        "PROMPT= PROMPT_SP=",
        f"autoload -Uz compinit; compinit -u -D; source {script}",
        'compadd() { builtin compadd -O offered "$@"; print -rl -- BEGIN $offered END }',
        "bindkey '^T' complete-word",
        "print -r -- RE''ADY",
    ]
    environment = os.environ | {"TERM": "dumb", "PATH": PATH}
    zsh = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, env=environment,
        start_new_session=True, cwd=script.parent,
    )  # fmt: skip
    try:
        os.write(shell, "\n".join([*lines, ""]).encode())
        _read_until("READY\r\n", shell)
        os.write(shell, f"{line}\x14".encode())
        shown = _read_until("END\r\n", shell)
    finally:
        zsh.kill()
        zsh.wait()
        os.close(shell)
        os.close(terminal)
    return shown.partition("BEGIN")[2].partition("END")[0].split()


def _read_until(end: str, shell: int) -> str:
    shown, give_up = b"", monotonic() + PATIENCE_SECONDS
    while end.encode() not in shown:
        assert monotonic() < give_up, shown
        if select.select([shell], [], [], 0.2)[0]:
            shown += os.read(shell, 65_536)
    return shown.decode()


def _printed(command: Sequence[str], folder: Path) -> list[str]:
    environment = os.environ | {"PATH": PATH}
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=folder
    )
    assert not found.stderr
    # Behind a tab fish prints a description.
    return [line.partition("\t")[0] for line in found.stdout.splitlines()]


SHELLS: Mapping[str, Callable[[str, Path], list[str]]] = {
    "bash": in_bash, "zsh": in_zsh, "fish": in_fish,
}  # fmt: skip


@pytest.fixture(params=SHELLS)
def offered(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], list[str]]:
    """A function that returns the words that a shell offers behind a line, sorted."""
    shell: str = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "script"
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["completion", shell]) == 0
    script.write_text(printed.getvalue())
    return lambda line: sorted(SHELLS[shell](line, script))


def test_commands_topics_services_and_shells_are_offered(
    offered: Callable[[str], list[str]],
) -> None:
    assert offered("millstream stat") == ["status"]
    assert offered("millstream help see") == ["seeds"]
    assert offered("millstream service ord") == ["order-details", "orders"]
    assert offered("millstream completion z") == ["zsh"]
    assert offered("millstream lab fail") == ["failover"]
    assert offered("millstream connect pre") == ["preview"]
    assert offered("millstream stop broker-") == ["broker-1", "broker-2", "broker-3"]
    assert offered("millstream up --only regi") == ["registry"]


def test_all_commands_and_topics_are_offered(offered: Callable[[str], list[str]]) -> None:
    assert offered("millstream ") == sorted(COMMANDS)
    assert offered("millstream help ") == sorted({*COMMANDS, *TOPICS})


def test_the_flags_of_a_command_are_offered(offered: Callable[[str], list[str]]) -> None:
    assert offered("millstream topics --boot") == ["--bootstrap-server"]
    assert offered("millstream service orders --http-p") == ["--http-port"]


def test_files_are_offered_as_values(offered: Callable[[str], list[str]], tmp_path: Path) -> None:
    (tmp_path / "client.properties").touch()
    (tmp_path / "other").touch()
    assert offered("millstream topics --command-config client.p") == ["client.properties"]


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_scripts_have_no_gap(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "{{" not in script
    assert "{commands}" not in script
