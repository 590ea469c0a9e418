"""What is reported of an order is what the topics say in the end."""

import asyncio
from decimal import Decimal

import aiohttp

from common.credentials.access import KafkaAccess
from demo.pipeline.observing import Observer
from demo.pipeline.registry import RegistryReader
from demo.pipeline.report import CHECKS, Outcome, Run, build_report, find_faults
from demo.pipeline.sending import Sender


def report_of(outcome: Outcome, **seen: object) -> tuple[Run, dict[str, object]]:
    """Return the run and its report when the topics say this of its one order."""

    async def wait() -> Run:
        async with aiohttp.ClientSession() as session:
            observer = Observer(KafkaAccess("nowhere"), RegistryReader("http://nowhere", session))
            assert outcome.order_id is not None
            observed = observer.seen(outcome.order_id)
            for name, value in seen.items():
                setattr(observed, name, value)
            run = Run([outcome], seconds=1.0, documents=1)
            await Sender("http://nowhere", "run", session, observer, 0.0).wait_for_ends(run, 0.0)
            return run

    run = asyncio.run(wait())
    return run, build_report(run)


def test_an_order_that_was_judged_after_its_sender_gave_it_up_is_reported_with_its_verdict() -> (
    None
):
    run, report = report_of(
        Outcome("late", None, order_id="1", begun_at=10.0),
        state="VALIDATED",
        total=Decimal("2.50"),
        judged_at=110.0,
        end="PAID",
        ended_at=111.0,
        checks=dict.fromkeys(CHECKS, "PASS"),
        payments=["PAID"],
        mails=1,
    )
    assert find_faults(run) == []
    assert (report["states"], report["final_states"]) == ({"VALIDATED": 1}, {"PAID": 1})
    assert report["revenue_validated"] == "2.50"
    assert report["latency_ms"] == {"p50": 100_000.0, "p99": 100_000.0, "max": 100_000.0}


def test_an_order_that_was_never_judged_is_a_fault_and_has_no_latency() -> None:
    run, report = report_of(Outcome("lost", None, order_id="1", begun_at=10.0))
    assert "1 orders not judged" in find_faults(run)
    assert "1 orders without a final state" in find_faults(run)
    assert report["states"] == {"CREATED": 1}
    assert report["latency_ms"] == {"p50": 0.0, "p99": 0.0, "max": 0.0}
