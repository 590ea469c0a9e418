"""`millstream rights`, and that its commands are those that `millstream acls` takes."""

import shlex

import pytest

from broker.cli.acls import add_arguments, read_options
from broker.cli.arguments import add_connection, tool_parser
from common.kafka.rights import programs
from millstream.cli.rights import main


def test_every_command_is_one_of_millstream_acls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*programs()]) == 0
    added = set()
    for line in capsys.readouterr().out.splitlines():
        parser = tool_parser("acls", "")
        add_connection(parser)
        add_arguments(parser)
        arguments = shlex.split(line)
        assert arguments[:2] == ["millstream", "acls"]
        options = parser.parse_args([*arguments[2:], "--bootstrap-server", "x:1"])
        chosen = read_options(parser, options)
        assert chosen.action == "add"
        for pattern, entries in chosen.entries.items():
            for principal, _, operation, _ in entries:
                added.add((principal, pattern, operation))
    assert len(added) == sum(len(rights) for rights in programs().values())


def test_what_operators_may_do_is_only_printed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert "User:spark" in printed
    assert "User:restore" not in printed
    assert main(["restore"]) == 0
    assert "User:restore" in capsys.readouterr().out


def test_only_what_is_asked_for_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "millstream acls --add --allow-principal User:search --operation READ --topic orders",
        "millstream acls --add --allow-principal User:search --operation WRITE "
        "--topic orders.dead-letter",
        "millstream acls --add --allow-principal User:search --operation READ --group search",
        "millstream acls --add --allow-principal User:search --operation WRITE "
        "--transactional-id search- --resource-pattern-type prefixed",
    ]


@pytest.mark.parametrize(
    "arguments", [["nobody"], ["--add"], ["--bootstrap-server", "x:1"]], ids=" ".join
)
def test_wrong_arguments_end_it(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
