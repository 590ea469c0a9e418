"""The schema registry: Confluent's REST interface over topic `_schemas`.

    rest          paths, bodies, status codes
    forwarding    sends writing requests to the instance that writes
    leader        elects that instance: one member of a Kafka group
    topic         the log; all instances read it, the leader writes it
    changes       decides a writing request: returns records, pure
    candidates    the schema of a request, before and after it is parsed: pure
    domain        the state: a fold over the records, pure
    questions     the questions of the decisions about schemas
    judge         answers the questions: `schema_types` parses schemas, `compatibility` compares
                  versions
    judging       the processes in which `judge` runs
    turns         splits the reading of a large text, so that other requests are served in between
    records, metadata, subjects, refusals
                  the vocabulary: records, their shapes, names and errors

Start with `python -m schemas.registry --help`.
"""
