"""The layer between Faust and the topologies, which ensures that each record counts once.

Faust alone acknowledges records that failed, delivers records while partitions move, and writes
outside of transactions. The modules here correct this; no topology imports them. Begin with
`delivery`, which passes records to the topologies. `positions` distinguishes new records from
repeated ones, `log_reader` reads records that Faust has lost, and `writer` writes a batch in one
transaction. `tables` keeps tables equal to their changelogs, and `transport`
makes Faust read only committed records and gives its clients their logins.
"""
