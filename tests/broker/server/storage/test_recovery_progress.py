"""What the log says while a start takes long: once a second, and how long it took."""

import pytest

from broker.server.storage.recovery_progress import RecoveryProgress

MB = 1_000_000


class HandSetClock:
    def __init__(self) -> None:
        self.ms = 5_000

    def now_ms(self) -> int:
        return self.ms

    def timestamp_ms(self) -> int:
        raise AssertionError("progress is not a matter of wall time")


def test_a_long_recovery_is_told_every_second_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    clock = HandSetClock()
    progress = RecoveryProgress(clock)
    for _ in range(25):
        clock.ms += 100
        progress.on_progress(50 * MB)
    progress.finish()
    assert caplog.messages == [
        "recovering logs read_mb=500 mb_per_s=500",
        "recovering logs read_mb=1000 mb_per_s=500",
        "recovered logs read_mb=1250 mb_per_s=500 seconds=2.5",
    ]


def test_a_short_one_and_a_long_start_without_one_say_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    clock = HandSetClock()
    short, none = RecoveryProgress(clock), RecoveryProgress(clock)
    clock.ms += 999
    short.on_progress(MB)
    short.finish()
    clock.ms += 9_000
    none.finish()
    assert caplog.messages == []
