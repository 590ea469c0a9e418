"""The exit status of tools that fail: that of Kafka's tools, except where those hide the failure.

`docs/tools.md` says where ours differ on purpose: a script must see that something failed.
"""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest

from tests.interop.tools.test_tools import MAIN_CLASSES, arguments_of
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools

pytestmark = pytest.mark.interop

SAME = [
    ("delete-records", "--offset-json-file {folder}/good.json"),
    ("delete-records", "--offset-json-file {folder}/none.json"),
    ("transactions", "abort --topic t --partition 0 --start-offset 5"),
    ("transactions", "abort --topic t --partition 0"),
    (
        "transactions",
        "abort --topic t --partition 0 --producer-id 5 --producer-epoch 0 --coordinator-epoch 0",
    ),
    ("transactions", "forceTerminateTransaction --transactionalId never"),
    ("transactions", "find-hanging"),
    ("get-offsets", "--topic nosuch"),
    ("groups", "--list --consumer --share"),
]
HIDDEN_BY_KAFKA = [
    ("delete-records", "--offset-json-file {folder}/beyond.json"),
    ("consumer-groups", "--describe --group never"),
    ("consumer-groups", "--delete --group never"),
    ("consumer-groups", "--delete-offsets --group never --topic t"),
    ("consumer-groups", "--reset-offsets --group g --topic nosuch --to-earliest --execute"),
]
WORDS_THE_SAME = {"transactions", "get-offsets"}


def write_offsets(folder: Path, name: str, offset: int) -> None:
    partitions = [{"topic": "t", "partition": 0, "offset": offset}]
    (folder / name).write_text(json.dumps({"version": 1, "partitions": partitions}))


def said_by_ours(tool: str, arguments: list[str]) -> tuple[int, str, str]:
    main: Callable[[list[str]], int] = import_module(f"broker.cli.{tool.replace('-', '_')}").main
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
        try:
            status = main(arguments)
        except SystemExit as refused:
            status = 1 if refused.code else 0
    return status, output.getvalue().strip(), errors.getvalue().strip()


def test_tools_end_as_kafka_s_but_where_those_hide_a_failure(
    apache_kafka: str, tmp_path: Path
) -> None:
    write_offsets(tmp_path, "good.json", 0)
    write_offsets(tmp_path, "beyond.json", 99)
    said_by_ours("topics", arguments_of("topics", apache_kafka, "--create --topic t"))
    asked = [
        (tool, arguments_of(tool, apache_kafka, line.format(folder=tmp_path)))
        for tool, line in SAME + HIDDEN_BY_KAFKA
    ]
    theirs = run_tools(
        kafka_libs(), [Tool(MAIN_CLASSES[tool], tuple(arguments)) for tool, arguments in asked]
    )
    ours = [said_by_ours(tool, arguments) for tool, arguments in asked]
    differ = []
    for line, (tool, _), (status, output, errors), their in zip(
        SAME + HIDDEN_BY_KAFKA, asked, ours, theirs, strict=True
    ):
        if status != their.status:
            assert (status, their.status) == (1, 0), (line, errors, their)
            differ.append(line)
        elif tool in WORDS_THE_SAME:
            expected = (their.output.strip(), their.errors.strip())
            assert (output, errors) == expected, line
    assert differ == HIDDEN_BY_KAFKA
