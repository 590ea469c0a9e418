"""What an explanation looks like, as text, as JSON and in the documentation; the command itself."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from explain.command import main
from explain.explanations import about_group, about_partition, explanation
from explain.facts import Unanswered
from explain.report import as_json, documentation, text
from tests.explain.cases import GROUPS, PARTITIONS, cluster, group

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
FROM = "## Every cause\n\n"


def test_the_page_has_every_cause() -> None:
    """REWRITE=1 writes the table anew."""
    before, head, table = PAGE.read_text(encoding="utf-8").partition(FROM)
    if os.environ.get("REWRITE"):
        PAGE.write_text(f"{before}{head}{documentation()}", encoding="utf-8")
    else:
        assert table == documentation()


def test_problems_come_first_and_advice_behind_its_sentence() -> None:
    cluster, topic, partition = PARTITIONS["partition-below-min-isr"].holds
    moved = replace(partition, replicas=(2, 1, 3), isr=(1, 2), min_isr=3)
    found = explanation("Topic orders", about_partition(cluster, topic, moved), ())
    lines = text(found).splitlines()
    assert lines[0] == "Topic orders: 2 problems."
    problem = lines.index(
        "  > Bring broker 3 back. Producers repeat by themselves until delivery.timeout.ms."
    )
    assert lines[problem - 1] == "  acks=all get NOT_ENOUGH_REPLICAS."
    notice = lines.index(
        "* Broker 1 leads partition orders-0, not the preferred broker 2, which is in sync."
    )
    assert notice > problem
    assert lines[notice + 1 : notice + 3] == [
        "  > The controller moves it by itself if auto.leader.rebalance.enable is on; or at once:",
        "    `millstream leader-election --election-type preferred --topic orders --partition 0`.",
    ]


def test_json_has_figures_for_programs() -> None:
    found = explanation("Group fraud", about_group(*GROUPS["group-without-members"].holds), ())
    read = json.loads(as_json(found))
    assert (read["subject"], read["problems"]) == ("Group fraud", 1)
    assert read["findings"][0]["code"] == "group-without-members"
    assert read["findings"][0]["figures"] == {"group": "fraud", "partitions": 2, "lag": 4}
    stands = json.loads(as_json(explanation("x", about_group(cluster(), group().group), ())))
    assert stands["problems"] == 0


def test_what_is_not_known_is_said() -> None:
    unanswered = [Unanswered("the groups", "CLUSTER_AUTHORIZATION_FAILED", "no")]
    said = text(explanation("Group fraud", (), unanswered))
    assert "Not known: the groups." in said
    assert "nothing is wrong" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "orders", "0:9999999999999999999"],
        ["topic", "o" * 40_000],
        ["group", "\ud800"],
        ["producer", "99999999999999999999"],
        ["producer", "1", "--epoch", "99999999999999999999"],
        ["transaction", "t" * 40_000],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_what_the_protocol_cannot_carry_is_an_error(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["--bootstrap-server", "127.0.0.1:1", *words])
    except SystemExit as ended:
        status = ended.code
    assert status in (1, 2)
    said = capsys.readouterr().err
    assert "is no number from 0" in said or "name is text" in said or "no UTF-8" in said


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x"])
def test_no_time_is_an_error(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--bootstrap-server", "127.0.0.1:1", "--timeout", seconds])
    assert "is no number of seconds" in capsys.readouterr().err


def test_no_broker_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--bootstrap-server", "127.0.0.1:1", "--timeout", "0.2", "group", "fraud"])
    assert status == 1
    assert "millstream explain: " in capsys.readouterr().err


@pytest.mark.parametrize("place", ["x", "1:", ":1", "-1", "1:2:3", "1:99999999999999999999"])
def test_a_wrong_place_is_an_error(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--bootstrap-server", "127.0.0.1:1", "topic", "orders", place])
    assert "PARTITION" in capsys.readouterr().err
