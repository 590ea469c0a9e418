"""The Kafka-compatible broker node and its command-line tools.

Start at `broker/README.md`, which walks a Produce, a Fetch and a CreateTopics through the files.
Imports go in one direction only, which import-linter enforces:
`cli -> server -> config -> coordinator -> metadata -> log -> records -> protocol -> model, errors`.
Nothing below `server` does IO except `log`, which accesses the disk only through `log.storage`.
"""
