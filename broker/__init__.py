"""The Kafka-compatible broker node and its command-line tools.

Start at `broker/README.md`, which walks a Produce, a Fetch and a CreateTopics through the files.
Imports go one way only, enforced by import-linter:
`cli -> server -> config -> coordinator -> metadata -> log -> records -> protocol -> model, errors`.
Everything below `server` is pure but for `log`, whose files all go through `log.storage`.
"""
