"""Record batches (magic 2) without IO: views over bytes, validation, compression, single records.

A batch is opaque to most of the broker: `header` reads only its 61 bytes of header, and
`validation` checks the lengths in its records. `record` and `compression` decode records, for the
cleaner, the coordinators, timestamp lookups, and topics whose settings require it. `walk` goes
through records by their lengths; `runs` and `layouts` spare most of that. `control` has control
records, `errors` the errors of bytes that are no batch.

Start with `batch.RecordBatch`; `build.build_batch` builds one.
"""
