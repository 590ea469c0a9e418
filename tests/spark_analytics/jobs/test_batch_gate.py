"""Micro-batches and the stopping of queries never wait for each other in a ring."""

import threading

import pytest

from spark_analytics.jobs.batch_gate import BatchGate, QueriesStoppingError

WAIT_SECONDS = 60


def test_a_stop_waits_for_the_batch_in_hand() -> None:
    gate, order = BatchGate(), []
    is_inside, may_leave = threading.Event(), threading.Event()

    def work() -> None:
        with gate.batch():
            is_inside.set()
            assert may_leave.wait(WAIT_SECONDS)
            order.append("batch")

    batch = threading.Thread(target=work)
    batch.start()
    assert is_inside.wait(WAIT_SECONDS)
    threading.Timer(0.05, may_leave.set).start()
    with gate.closed(WAIT_SECONDS):
        order.append("stop")
    batch.join()

    assert order == ["batch", "stop"]


def test_a_batch_that_comes_during_a_stop_fails_at_once_and_the_next_is_let_in() -> None:
    gate = BatchGate()
    with gate.closed(WAIT_SECONDS), pytest.raises(QueriesStoppingError), gate.batch():
        pytest.fail("inside a closed gate")

    with gate.batch():
        pass


def test_a_stop_does_not_wait_for_ever() -> None:
    gate = BatchGate()
    with gate.batch(), gate.closed(0.01):
        pass
    with gate.batch():
        pass
