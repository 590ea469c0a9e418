"""Record batches of aiokafka, which builds, reads and checks them in C, and its hash of a key.

aiokafka has no public names for them. All who need them import this file, so that a change of the
library is met once.
"""

from aiokafka.partitioner import murmur2
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

__all__ = ["DefaultRecordBatchBuilder", "MemoryRecords", "murmur2"]
