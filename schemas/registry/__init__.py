"""The schema registry: Confluent's REST interface over topic `_schemas`.

`domain` is the state, folded from records and pure; `topic` is the log it is folded from;
`routes` and `app` are the REST side. Start with `python -m schemas.registry --help`.
"""
