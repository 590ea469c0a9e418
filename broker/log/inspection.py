"""The check of a closed segment's end, at its first use.

A clean start reads only the end of the active segment, and the names and sizes of the others. So
that a damaged closed segment does not silently return fewer records, its last batches are read
before its first use. Damage is logged once, with the file and the offsets; the readable part is
served.
"""

import logging

from broker.log.local_log import LocalLog
from broker.log.segment import Segment
from broker.log.segment_names import LOG_SUFFIX, segment_path

_logger = logging.getLogger(__name__)


def inspect(log: LocalLog, segment: Segment) -> None:
    """Compare a closed segment's end with the start of the next one."""
    segment.is_inspected = True
    following = segment.next_offset
    end, next_offset, reason = segment.find_end()
    path, excess_bytes = segment.path(LOG_SUFFIX), segment.size_bytes - end
    # Compaction may have removed all records at the end of a segment.
    is_short = next_offset < following and not log.config.is_compacted
    if excess_bytes and next_offset == following:
        segment.size_bytes = end
        _logger.warning(
            "left out what is behind the last batch file=%s offset=%d bytes=%d reason=%s",
            path,
            next_offset,
            excess_bytes,
            reason,
        )
    elif excess_bytes or next_offset > following:
        _logger.error(
            "records cannot be read file=%s offset=%d next_segment=%d bytes=%d reason=%s: restore "
            "the file, or read on from the next one",
            path,
            next_offset,
            following,
            excess_bytes,
            reason or "offsets overlap",
        )
    elif is_short:
        _logger.error(
            "records are missing offset=%d next_segment=%d: %s ends before the next one begins, or "
            "%s is lost; it is read on from the next one",
            next_offset,
            following,
            path,
            segment_path(log.directory, next_offset, LOG_SUFFIX),
        )
