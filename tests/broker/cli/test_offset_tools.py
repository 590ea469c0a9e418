"""Which partitions and which offsets the tools about offsets mean."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from broker.cli.arguments import ToolFailed
from broker.cli.consumer_groups import regex_text
from broker.cli.delete_records import outcome_text
from broker.cli.get_offsets import chosen_by_rules, chosen_by_topic, parse_time
from broker.cli.group_tool import chosen, parse_partitions
from broker.cli.json_files import offsets_to_delete, read_json
from broker.cli.offset_reset import parse_datetime, parse_duration, plan_text, read_plan
from broker.model import TopicPartition
from common.kafka.admin.leaders import EARLIEST, LATEST_TIERED
from common.kafka.errors import ErrorCode, KafkaError

PARTITIONS = [TopicPartition(topic, number) for topic in ("a", "b1") for number in range(4)]


def chosen_names(chooses: Callable[[TopicPartition], bool]) -> list[str]:
    return [str(partition) for partition in PARTITIONS if chooses(partition)]


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ("a:1", ["a-1"]),
        ("a:1-3", ["a-1", "a-2"]),
        ("a:2-", ["a-2", "a-3"]),
        (":-1", ["a-0", "b1-0"]),
        ("b.", ["b1-0", "b1-1", "b1-2", "b1-3"]),
        ("a:0,b1:3", ["a-0", "b1-3"]),
        ("b", []),
    ],
)
def test_a_rule_chooses_partitions(rules: str, names: list[str]) -> None:
    assert chosen_names(chosen_by_rules(rules)) == names


def test_a_topic_and_partitions_choose_together() -> None:
    assert chosen_names(chosen_by_topic(".", "3,0")) == ["a-0", "a-3"]
    assert len(chosen_names(chosen_by_topic(None, None))) == 8


def test_times_have_names_and_numbers() -> None:
    assert (parse_time("earliest"), parse_time("-5"), parse_time("17")) == (
        EARLIEST,
        LATEST_TIERED,
        17,
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("P1D", 86_400),
        ("PT1H30M", 5_400),
        ("P1DT0.5S", 86_400.5),
        ("-PT1M", -60),
        ("pt-2s", -2),
    ],
)
def test_a_duration_is_read_as_java_reads_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1H", "P1W"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ToolFailed, match="PnDTnHnMnS"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "timestamp_ms"),
    [
        ("1970-01-01T00:00:01.002", 1_002),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T00:00:00.000Z", 0),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000+01", 0),
    ],
)
def test_a_date_is_in_utc_unless_it_says_otherwise(text: str, timestamp_ms: int) -> None:
    assert parse_datetime(text) == timestamp_ms


@pytest.mark.parametrize("text", ["2000-01-01", "2000-13-01T00:00:00.000", "now"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ToolFailed, match="YYYY-MM-DD"):
        parse_datetime(text)


def test_an_exported_plan_is_read_back(tmp_path: Path) -> None:
    offsets = {"g": {TopicPartition("a", 0): 1, TopicPartition("a", 10): 2}, "h": {}}
    file = tmp_path / "plan.csv"
    file.write_text(plan_text(offsets, ["g"]))
    assert file.read_text() == "a,0,1\na,10,2\n"
    assert read_plan(str(file), ["g"]) == {"g": offsets["g"]}
    file.write_text(plan_text(offsets, ["g", "h"]))
    assert file.read_text() == "g,a,0,1\ng,a,10,2\n"
    assert read_plan(str(file), ["g", "h"]) == {"g": offsets["g"]}


def test_a_plan_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    for content in ("a,b,1\n", "a,1\n", "a,0,1,2,3\n", f"a,{2**31},1\n", f"a,0,{2**63}\n"):
        file.write_text(content)
        with pytest.raises(ToolFailed, match="no offset"):
            read_plan(str(file), ["g"])


def test_a_plan_with_a_topic_that_no_request_can_contain_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(f"{'t' * 2**15},0,1\n")
    with pytest.raises(ToolFailed, match="'topic' field is too long to be serialized"):
        read_plan(str(file), ["g"])


UNREADABLE = (b"\xff\xfe\0", b"[" * 100_000, b'"a' + b"a" * 200_000)


@pytest.mark.parametrize("reads", [read_json, lambda path: read_plan(path, ["g"])])
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, reads: Callable[[str], object]
) -> None:
    file = tmp_path / "file"
    for content in UNREADABLE:
        file.write_bytes(content)
        with pytest.raises(ToolFailed):
            reads(str(file))
    for path, why in ((tmp_path, "Is a directory"), (tmp_path / "no", "No such file")):
        with pytest.raises(ToolFailed, match=f"cannot read {path}: {why}"):
            reads(str(path))


def test_partitions_of_a_topic() -> None:
    assert parse_partitions("a:0,2") == [PARTITIONS[0], PARTITIONS[2]]
    for text in ("a:", "a:b", "a:0:1"):
        with pytest.raises(ToolFailed):
            parse_partitions(text)


def test_states_are_named_in_any_case() -> None:
    assert chosen("stable, EMPTY", ("Empty", "Stable"), "state") == ["Stable", "Empty"]
    assert chosen("", ("Empty",), "state") == []


def test_a_regular_expression_is_validated() -> None:
    assert regex_text("a.*") == "The regular expression `a.*` is valid."
    # Python's would take this; RE2, which the coordinators have, does not.
    assert regex_text("(?=a)").startswith("The regular expression `(?=a)` is invalid: ")


def test_offsets_to_delete() -> None:
    entry = {"topic": "a", "partition": 0, "offset": -1}
    assert offsets_to_delete({"partitions": [entry]}) == {PARTITIONS[0]: -1}
    for content, problem in (
        ({}, "Missing partitions field"),
        ({"partitions": [entry, entry]}, "duplicate topic partitions: a-0"),
        ({"partitions": [{"topic": "a", "partition": 0}]}, '"offset" is missing'),
        ({"version": 2, "partitions": []}, "Not supported version field value 2"),
        ({"partitions": [entry | {"topic": "t" * 2**15}]}, "'topic' field is too long"),
        ({"partitions": [entry | {"topic": "\ud800"}]}, "'topic' field is no UTF-8"),
        ({"partitions": [entry | {"offset": 2**63}]}, '"offset" is no number of 64 bits'),
        ({"partitions": [entry | {"partition": 2**31}]}, '"partition" is no number'),
    ):
        with pytest.raises(ToolFailed, match=problem):
            offsets_to_delete(content)


def test_the_outcome_of_a_deletion() -> None:
    error = KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "too far")
    assert outcome_text(PARTITIONS[0], 7) == "partition: a-0\tlow_watermark: 7"
    assert outcome_text(PARTITIONS[0], error) == "partition: a-0\terror: too far"
