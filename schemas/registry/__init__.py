"""The schema registry: Confluent's REST interface over topic `_schemas`.

    rest          paths, bodies, status codes
    forwarding    to the instance that writes
    leader        who that is: one member of a Kafka group
    topic         the log; read by all, written by the leader
    changes       what a writing request does, as records: pure
    domain        what is known: a fold over the records, pure
    candidates, compatibility, schema_types
                  what a schema is, and whether it may follow the earlier ones: pure
    records, subjects, refusals
                  the words of it

Start with `python -m schemas.registry --help`.
"""

from common.http.certificates import read_when_needed

read_when_needed()
