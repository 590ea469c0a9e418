"""Every tool explains itself, and says what was meant where it is mistyped."""

import re
import shlex
from importlib import import_module
from io import StringIO

import pytest

from broker.__main__ import COMMANDS, main
from broker.cli.admin_settings import admin_settings
from broker.cli.clients.library import AGAIN_AFTER_MS, Teller
from broker.cli.examples import EXAMPLES
from broker.cli.waiting import TerminalWatch
from broker.server.clock import SystemClock
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.errors import ErrorCode, KafkaError

SUB_COMMANDS = [name for name in EXAMPLES if " " in name and name != "broker start"]


def help_of(command: str, capsys: pytest.CaptureFixture[str], *before: str) -> str:
    module = import_module(f"broker.cli.{command.replace('-', '_')}")
    with pytest.raises(SystemExit) as ended:
        module.main([*before, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_a_description_and_two_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = help_of(command, capsys)
    assert re.search(r"\n\n[A-Z`][^\n]+(\n[^\n]+)*\n\n", shown), shown
    examples = shown.split("\nexamples:\n")[1].strip().splitlines()
    assert len(examples) == 2
    for example in examples:
        words = shlex.split(example)
        assert command in words
        _, *arguments = words[words.index(command) :]
        sub_command = arguments[:1] if arguments and f"{{{arguments[0]}" in shown else []
        known = shown + (help_of(command, capsys, *sub_command) if sub_command else "")
        sub_commands = [word for word in arguments if not word.startswith("-") and word in shown]
        for word in sub_commands:
            try:
                known += help_of(command, capsys, word)
            except (AssertionError, pytest.fail.Exception):
                continue
        capsys.readouterr()
        flags = [word for word in arguments if word.startswith("--")]
        assert [flag for flag in flags if flag not in known] == []


@pytest.mark.parametrize("name", SUB_COMMANDS)
def test_help_of_a_sub_command_has_a_description_and_two_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, sub_command = name.split()
    tool_flags = help_of(tool, capsys)
    assert sub_command in tool_flags
    shown = help_of(tool, capsys, sub_command)
    assert re.search(r"\n\n[A-Z][^\n]+(\n[^\n]+)*\.\n\n", shown), shown
    described, _, examples = shown.partition("\nexamples:\n")
    assert len(examples.strip().splitlines()) == 2
    for example in examples.strip().splitlines():
        flags = re.findall(r" (--?[a-z-]+)\b", example)
        assert [flag for flag in flags if flag not in described + tool_flags] == []


def test_every_command_has_examples() -> None:
    named = {name.removeprefix("broker ") for name in EXAMPLES} - {*SUB_COMMANDS}
    assert named == COMMANDS.keys()


def test_the_commands_are_listed_on_demand_and_a_mistyped_one_is_guessed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    assert "millstream broker start server.properties" in capsys.readouterr().out
    assert main(["topcs"]) == 2
    assert "no command 'topcs'; did you mean topics?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "meant"),
    [
        ("topics", "--bootstrap-server localhost:1 --lst", 1, ": --lst (did you mean --list?)"),
        ("storage", "format --clusterid a -c b", 1, "(did you mean --cluster-id?)"),
        ("storage", "formt", 1, "(did you mean format?)"),
        ("dump-log", "--flies a", 1, "; there is no --flies (did you mean --files?)"),
        ("start", "--overide a=b", 2, "(did you mean --override?)"),
        ("metadata-quorum", "--bootstrap-server a describe --stats", 1, "(did you mean --status?)"),
        ("features", "--bootstrap-server a:1 upgrade --dryrun", 1, "(did you mean --dry-run?)"),
        ("cluster", "unregister --di 1", 1, "(did you mean --id?)"),
    ],
)  # fmt: skip
def test_what_is_mistyped_is_guessed(
    tool: str, arguments: str, status: int, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"broker.cli.{tool.replace('-', '_')}")
    with pytest.raises(SystemExit) as ended:
        module.main(arguments.split())
    assert ended.value.code == status
    assert meant in capsys.readouterr().err


def test_an_address_where_nobody_answers_is_told_soon() -> None:
    settings = AdminSettings(bootstrap=(("127.0.0.1", 1),), first_contact_timeout_ms=300)
    clock = SystemClock()
    start_ms = clock.now_ms()
    with AdminClient(settings) as client, pytest.raises(KafkaError) as refused:
        client.nodes()
    assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert "127.0.0.1:1: Connection refused" in refused.value.message
    assert clock.now_ms() - start_ms < 5_000


class Terminal(StringIO):
    """Standard error that somebody reads, or nobody."""

    def __init__(self, *, is_read: bool) -> None:
        super().__init__()
        self.is_read = is_read

    def isatty(self) -> bool:
        return self.is_read


@pytest.mark.parametrize("is_read", [True, False])
def test_a_terminal_is_told_what_is_waited_for(
    is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(is_read=is_read)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("broker.cli.waiting.SILENT_SECONDS", 0.05)
    settings = AdminSettings(
        bootstrap=(("127.0.0.1", 1),), first_contact_timeout_ms=400, watch=TerminalWatch()
    )
    with AdminClient(settings) as client, pytest.raises(KafkaError):
        client.nodes()
    told = (
        "Waiting for Metadata: the cluster at 127.0.0.1:1 has not answered yet (Ctrl-C ends it)\n"
    )
    assert terminal.getvalue() == (told if is_read else "")


def test_first_contact_takes_ten_seconds_at_most_unless_it_is_said_otherwise() -> None:
    assert admin_settings("a:1").first_contact_timeout_ms == 10_000
    told = admin_settings("a:1", properties={"default.api.timeout.ms": "30000"})
    assert told.first_contact_timeout_ms == 30_000
    assert admin_settings("a:1", default_timeout_ms=5_000).first_contact_timeout_ms == 5_000


def test_what_the_library_says_again_and_again_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Stopped(SystemClock):
        at_ms = 7

        def now_ms(self) -> int:
            return self.at_ms

    clock = Stopped()
    teller = Teller(clock)
    for number in range(3):
        teller.tell(f"a:1 refused (after {number}ms)")
    teller.tell("another")
    assert capsys.readouterr().err.splitlines() == ["WARN a:1 refused (after 0ms)", "WARN another"]
    clock.at_ms += AGAIN_AFTER_MS
    teller.tell("another")
    assert capsys.readouterr().err == "WARN another\n"
