"""The Avro schemas of every event, how they travel, and the schema registry.

`<domain>/<event>.v<N>.avsc` is one version of one event and is never edited once released: a
change is a new file. `loader` finds and reads them, `wire` turns events into the bytes that
Confluent's serializers write and back, `registry/` is the server that gives schemas their ids.
"""
