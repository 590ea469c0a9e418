"""Every command explains itself with two examples that hold, and knows what a slip may have meant.

Kafka's tools have a parser of their own: `tests/broker/cli/test_tool_help.py`.
"""

import re
import runpy
import shlex
import sys
from importlib.util import find_spec
from typing import NoReturn

import pytest

from connect.client.examples import EXAMPLES as CONNECT_COMMANDS
from demo.labs.command import WALKS
from millstream.cli.commands import COMMANDS, SERVICES, TOOLS, main
from millstream.cli.extras import missing_for
from millstream.cli.help_text import OWN_HELP

SLIPS = {
    "registry": ("--http-prt", "--http-port"),
    "rest-proxy": ("--overide=a=b", "--override"),
    "cluster start": ("--brokres=3", "--brokers"),
    "connect": ("--hepl", "--help"),
    **{f"connect {name}": ("--hepl", "--help") for name in CONNECT_COMMANDS},
    "connect offsets": ("--rest", "--reset"),
    "console": ("--read-onyl", "--read-only"),
    "mirror": ("--onec", "--once"),
    "mirror status": ("--jsno", "--json"),
    **{f"service {name}": ("--htp-port=1", "--http-port") for name in SERVICES},
    "streams": ("--registy-url", "--registry-url"),
    "spark-job": ("--chekpoint", "--checkpoint"),
    "dashboard": ("--stroe", "--store"),
    "stop": ("--klil", "--kill"),
    "start": ("--nmae=x", "--name"),
    "explain": ("--jsno", "--json"),
    "lag": ("--wtach", "--watch"),
    "faults": ("--upstraem=a:1", "--upstream"),
    "backup": ("--topcs=a", "--topics"),
    "restore": ("--topcs=a", "--topics"),
    "explain topic": ("--record-bites=1", "--record-bytes"),
    "explain group": ("--secons=1", "--seconds"),
    "explain producer": ("--epich=1", "--epoch"),
    "explain transaction": ("--principle=x", "--principal"),
    "demo": ("--lit-e", "--lite"),
    "load": ("--ordersurl", "--orders-url"),
    "lab": ("--hepl", "--help"),
    "rights": ("--bootstrap-sever=x:1", "--bootstrap-server"),
    **{f"lab {name}": ("--patient-seconds", "--patience-seconds") for name in WALKS},
    "certificates": ("--hosts=a", "--host"),
    "up": ("--ephemera1", "--ephemeral"),
    "status": ("--jsno", "--json"),
    "logs": ("--folow", "--follow"),
    "down": ("--delete-dat4", "--delete-data"),
}
"""By command: a flag mistyped, and the one that was meant."""


@pytest.fixture(autouse=True)
def run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs parse their arguments in this process instead of becoming them."""

    def become(module: str, *arguments: str) -> NoReturn:
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        program = find_spec(f"{module}.__main__")
        assert program is not None
        assert program.origin is not None
        runpy.run_path(program.origin, run_name="__main__")
        raise AssertionError(f"{module} went on with {arguments}")

    monkeypatch.setattr("millstream.cli.commands.become", become)


def outcome(words: list[str]) -> int:
    """Return the exit status of a command."""
    if problem := missing_for(words[0]):
        pytest.skip(problem)
    try:
        return main(words)
    except SystemExit as ended:
        status = ended.code
    if not isinstance(status, int):
        pytest.fail(str(status))
    return status


def test_no_command_is_left_out() -> None:
    checked = (
        {command.split()[0] for command in SLIPS} | TOOLS.keys() | {"broker"} | OWN_HELP.keys()
    )
    assert checked == set(COMMANDS)


@pytest.mark.parametrize("command", [*SLIPS, *OWN_HELP])
def test_help_has_a_description_and_two_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: millstream {command}")
    assert re.search(r"\n\n[A-Z`][^\n]+(\n[^\n]+)*\.\n\n", shown), shown
    examples = shown.split("\nexamples:\n")[1].strip().splitlines()
    assert len(examples) == 2
    for example in examples:
        assert f"millstream {command}".split()[0] in example
        check_example(example, capsys)


def check_example(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every flag of an example is one that the help of its command has."""
    words = shlex.split(re.sub(r'["$()]', "", example))
    arguments = words[words.index("millstream") + 1 :]
    command = max((c for c in SLIPS if arguments[: len(c.split())] == c.split()), default=None)
    flags = {word for word in arguments if word.startswith("--")}
    if command is not None and flags:
        assert outcome([*command.split(), "--help"]) == 0
        known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out.split("\nexamples:\n")[0]))
        assert flags <= known, example


@pytest.mark.parametrize(("command", "slip", "meant"), [(c, *pair) for c, pair in SLIPS.items()])
def test_a_mistyped_flag_is_guessed(
    command: str, slip: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome([*command.split(), slip]) == 2
    assert f"did you mean {meant}" in capsys.readouterr().err


def test_an_unknown_flag_is_named_where_another_argument_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert outcome(["mirror", "--onec"]) == 2
    assert "mm2.properties; there is no --onec; did you mean --once?" in capsys.readouterr().err


def test_a_mistyped_sub_command_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(["connect", "lst"]) == 2
    assert "did you mean list" in capsys.readouterr().err
