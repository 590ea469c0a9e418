"""The pure parts of `millstream load`: when orders are due, and what is told of their ends."""

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.load.arrivals import PROFILES, due_times
from demo.load.faults import Slow, decline_some, parse_slow
from demo.load.options import parse_options
from demo.load.report import build_report, find_problems
from demo.load.sending import Sent
from demo.pipeline.synthetic import make_scenery

REQUIRED = ["--orders-url", "http://o/", "--bootstrap-servers", "k:1", "--registry-url", "http://r"]


def test_a_constant_rate_is_evenly_spaced() -> None:
    due = due_times("constant", 50, 10, 1)
    assert len(due) == 500
    assert due[0] == 0
    steps = [later - earlier for earlier, later in itertools.pairwise(due)]
    assert steps == pytest.approx([0.02] * 499)


@given(
    profile=st.sampled_from(sorted(PROFILES)),
    rate=st.floats(0.5, 300),
    seconds=st.floats(0.1, 30),
    seed=st.integers(0, 99),
)
def test_orders_are_due_in_order_within_the_time_and_never_faster_than_the_rate(
    profile: str, rate: float, seconds: float, seed: int
) -> None:
    due = due_times(profile, rate, seconds, seed)
    assert due == sorted(due)
    assert all(0 <= at <= seconds for at in due)
    assert due == due_times(profile, rate, seconds, seed)
    if profile != "poisson":
        steps = [later - earlier for earlier, later in itertools.pairwise(due)]
        assert min(steps, default=1 / rate) >= 0.8 / rate


def test_profiles_have_the_shape_they_are_called_by() -> None:
    def count(profile: str, begin: float, end: float) -> int:
        return sum(begin <= at < end for at in due_times(profile, 100, 100, 1))

    assert len(due_times("ramp", 100, 100, 1)) == pytest.approx(5_000, rel=0.01)
    assert count("ramp", 0, 10) < count("ramp", 90, 100) / 10
    assert count("spike", 40, 60) == pytest.approx(2_000, rel=0.01)
    assert count("spike", 0, 40) == pytest.approx(800, rel=0.01)
    assert count("wave", 13, 20) > 5 * count("wave", 30, 37)
    assert len(due_times("poisson", 100, 100, 1)) == pytest.approx(10_000, rel=0.05)


@dataclass
class Seen:
    """What was seen of the orders."""

    judged_at: dict[str, float] = field(default_factory=dict)
    ended_at: dict[str, float] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)


def sent_with(**orders: tuple[float, str | None]) -> Sent:
    sent = Sent()
    for order_id, (due_at, expected) in orders.items():
        sent.due_at[order_id] = due_at
        if expected is not None:
            sent.expected[order_id] = expected
    return sent


def test_latency_counts_from_when_a_post_was_due() -> None:
    sent = sent_with(a=(10.0, "VALIDATED"), b=(11.0, "FAILED"), c=(12.0, None))
    sent.refused = 1
    report = build_report(
        sent,
        Seen(
            {"a": 10.1, "b": 11.3, "somebody else's": 5.0},
            {"a": 10.4, "b": 11.3},
            {"a": "PAID", "b": "FAILED"},
        ),
        offered_per_second=2,
        seconds=2,
    )
    assert report["posted"] == 4
    assert report["judged"] == report["ended"] == 2
    assert report["final_latency_ms"]["max"] == 400.0
    assert report["latency_ms"] == {"p50": 100.0, "p90": 300.0, "p99": 300.0, "max": 300.0}
    assert report["states"] == {"FAILED": 1, "PAID": 1, "unknown": 1}
    assert report["judged_per_second"] == 1.0


def test_what_is_not_as_it_should_be_is_named() -> None:
    sent = sent_with(a=(1, "VALIDATED"), b=(1, "FAILED"), c=(1, "VALIDATED"))
    assert find_problems(sent, dict.fromkeys("abc", 2.0), {"a": "VALIDATED", "b": "FAILED"}) == []
    sent.unavailable = 2
    sent.fail("status 500")
    assert find_problems(sent, {"a": 2.0, "b": 2.0}, {"a": "VALIDATED", "b": "VALIDATED"}) == [
        "1 POSTs ended with status 500",
        "2 POSTs were answered 503",
        "1 accepted orders were not judged in time",
        "1 orders should be FAILED and were VALIDATED",
    ]


def test_a_report_of_nothing_is_no_error() -> None:
    report = build_report(Sent(), Seen(), offered_per_second=0, seconds=1)
    assert report["judged_per_second"] == 0
    assert report["latency_ms"]["p99"] == 0


def test_the_declined_keep_what_they_should_come_to() -> None:
    orders = make_scenery(200, 3).orders
    some = decline_some(orders, 0.25, 3)
    declined = [order for order in some if str(order.customer_id).startswith("declined-")]
    assert 30 < len(declined) < 70
    assert [order.name for order in some] == [order.name for order in orders]
    assert decline_some(orders, 0.0, 3) == orders


def test_options_are_read() -> None:
    options = parse_options([*REQUIRED, "--slow", "http://f/=200", "--slow", "http://g=0"])
    assert options.orders_url == "http://o"
    assert options.slow == [Slow("http://f", 200), Slow("http://g", 0)]


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rate", "0"],
        ["--rate", "nan"],
        ["--seconds", "-1"],
        ["--declined", "1.1"],
        ["--poison", "-1"],
        ["--slow", "fraud=200"],
        ["--slow", "http://f=soon"],
        ["--profile", "square"],
        ["--orders", "500"],
        ["--orders-url", "127.0.0.1:8080"],
        ["--registry-url", "http://"],
    ],
)
def test_wrong_options_end_with_a_message(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_options([*REQUIRED, *wrong])
    assert wrong[0] in capsys.readouterr().err


def test_slow_names_a_service_and_a_time() -> None:
    assert parse_slow("http://127.0.0.1:1/x=5") == Slow("http://127.0.0.1:1/x", 5)
