"""Limits the records and bytes per second of version 3. Pure: time is an argument."""

from dataclasses import dataclass, field

from rest_proxy.refusals import RestError

THROTTLED = 42901


@dataclass(slots=True)
class _Bucket:
    per_second: float
    level: float
    at: float

    def take(self, amount: float, now_seconds: float) -> bool:
        """Take an amount if some is left; the excess delays later calls."""
        self.level = min(self.per_second, self.level + (now_seconds - self.at) * self.per_second)
        self.at = now_seconds
        if self.level <= 0:
            return False
        self.level -= amount
        return True


@dataclass(slots=True)
class RateLimit:
    """Off when `records_per_second` is None."""

    records_per_second: float | None
    bytes_per_second: float
    _buckets: list[_Bucket] = field(default_factory=list)

    def check(self, size_bytes: int, now_seconds: float) -> None:
        """Raise RestError, 42901, for a record above the rate."""
        if self.records_per_second is None:
            return
        if not self._buckets:
            self._buckets = [
                _Bucket(each, each, now_seconds)
                for each in (self.records_per_second, self.bytes_per_second)
            ]
        records, size = self._buckets
        if not (records.take(1, now_seconds) and size.take(size_bytes, now_seconds)):
            raise RestError(THROTTLED, "Too many records or bytes a second: send fewer.")
