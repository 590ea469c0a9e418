"""Where a log begins: what the checkpoint, the leader epochs and the first segment say of it.

All three say the same after a clean stop: the start of the first leader epoch is the log's. When
they do not, the lowest counts, for nothing is taken for deleted that is not known to be, and
a line says so.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from broker.log.checkpoints import LOG_START_CHECKPOINT
from broker.log.partition_log import PartitionLog
from broker.log.segment_names import LOG_SUFFIX, segment_path

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenHints:
    """What the checkpoints say about a partition; `None` where they say nothing."""

    is_clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    timestamp_ms: int = 0
    on_progress: Callable[[int], None] = lambda size_bytes: None
    """Told after every batch how many bytes of log have been read; twice when producers follow."""


def begin_log(log: PartitionLog, hints: OpenHints, first_epoch_offset: int | None) -> None:
    """Set the log's start; drops what lies before a start that the log does not reach to.

    The epochs are written before the checkpoint, so they never begin before it
    (`first_epoch_offset`, None when they had to be made anew).
    """
    first, said = log.segments.first, hints.log_start_offset
    start = max(said, first.base_offset)
    if first_epoch_offset is not None and log.size_bytes:
        if hints.is_clean and first_epoch_offset < first.base_offset:
            _logger.error(
                "records are missing file=%s offset=%d next_segment=%d: the file is not there",
                segment_path(log.directory, first_epoch_offset, LOG_SUFFIX),
                first_epoch_offset,
                first.base_offset,
            )
        elif first_epoch_offset < said:
            _ignore(log, said, f"the first leader epoch begins at {first_epoch_offset}")
            start = max(first_epoch_offset, first.base_offset)
        elif first_epoch_offset > start:
            _logger.warning(
                "records from offset %d on are served, and the first leader epoch begins at %d: if "
                "they had been deleted, this is lost: %s (partition %s)",
                start,
                first_epoch_offset,
                f"{log.directory.rpartition('/')[0]}/{LOG_START_CHECKPOINT}",
                log.topic_partition,
            )
    if start > log.log_end_offset and log.size_bytes and hints.high_watermark < start:
        _ignore(log, said, f"it is beyond the end {log.log_end_offset}")
        start = first.base_offset
    log.log_start_offset = start
    if start > log.log_end_offset:
        _drop_all(log, start, hints.timestamp_ms)


def _ignore(log: PartitionLog, said: int, reason: str) -> None:
    _logger.error(
        "%s is ignored directory=%s offset=%d reason=%s",
        LOG_START_CHECKPOINT,
        log.directory,
        said,
        reason,
    )


def _drop_all(log: PartitionLog, start: int, timestamp_ms: int) -> None:
    """Begin anew where the deletion of records had reached, as the crash took all behind it."""
    if log.size_bytes:
        _logger.warning(
            "records below the log's start removed partition=%s directory=%s log_start_offset=%d "
            "log_end_offset=%d bytes=%d: they had been deleted, and those behind them are lost",
            log.topic_partition,
            log.directory,
            start,
            log.log_end_offset,
            log.size_bytes,
        )
    log.truncate_fully_and_start_at(start, timestamp_ms)
