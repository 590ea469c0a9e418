"""The Avro schemas of every event, the topics of the events, and the schema registry.

`<domain>/<event>.v<N>.avsc` is one version of one event and is never edited once released: a
change is a new file. `topics` declares the topics that several parts of the pipeline share,
`registry/` is the server that gives schemas their ids. `common/registry` reads the files and turns
events into bytes.
"""
