"""The start of a log, from the checkpoint, the leader epochs and the first segment.

After a clean stop all three agree: the log starts where its first leader epoch starts. If they
disagree, the lowest offset is used, because no record is treated as deleted unless that is certain,
and the disagreement is logged.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from broker.log.checkpoints import LOG_START_CHECKPOINT
from broker.log.names import LOG_SUFFIX, segment_path
from broker.log.partition_log import PartitionLog

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenHints:
    """The checkpointed values of a partition, and the way to open its log."""

    is_clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    timestamp_ms: int = 0
    on_progress: Callable[[int], None] = lambda size_bytes: None
    """Called after every batch with its bytes; a batch may be read twice, the second time for
    producers."""


def begin_log(log: PartitionLog, hints: OpenHints, first_epoch_offset: int | None) -> None:
    """Set the log's start; remove all records if the log ends before its start.

    The epochs are written before the checkpoint, so the first one never starts before it
    (`first_epoch_offset`, None if the epochs were rebuilt).
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
    """Restart the log at its start offset, because a crash lost all records from there on."""
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
