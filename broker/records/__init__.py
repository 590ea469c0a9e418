"""Record batches (magic 2): views over bytes, validation, compression, single records. Pure.

A batch is opaque to the broker: `header` and `validation` look at its 61 bytes of header only.
`record` and `compression` are for the few who must look inside: the cleaner, the coordinators,
timestamp look-ups, and topics whose settings ask for it.
Start with `batch.RecordBatch`; `build.build_batch` makes one.
"""
