"""The schema registry: Confluent's REST interface over topic `_schemas`.

    rest          paths, bodies, status codes
    forwarding    sends writing requests to the instance that writes
    leader        elects that instance: one member of a Kafka group
    topic         the log; all instances read it, the leader writes it
    changes       what a writing request does, as records: pure
    candidates    what a request brings, and what it would store: pure
    domain        what is known: a fold over the records, pure
    questions     what the decisions ask about schemas
    judge         answers: `schema_types` says what a schema is, `compatibility` what may follow it
    judging       the processes in which it answers
    turns         lets one large text be read between two looks at the network
    records, metadata, subjects, refusals
                  the vocabulary: records, their shapes, names and errors

Start with `python -m schemas.registry --help`.
"""

from common.http.certificates import read_when_needed

read_when_needed()
