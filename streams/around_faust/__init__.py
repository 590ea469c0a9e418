"""What stands between Faust and the topologies, so that each record counts once.

Faust alone acknowledges records that failed, lets records in while partitions move, and writes
outside of transactions. The files here make up for that, and no topology imports them.
`delivery` is where to start: it hands records to the topologies. `positions` tells new records from
repeated ones, `log_reader` reads what Faust has lost, `writer` writes a batch in one transaction,
`tables`, `recovery` and `stores` keep tables equal to their changelogs, and `transport` has Faust
read only what is committed.
"""
