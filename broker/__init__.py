"""The Kafka-compatible broker node and its command-line tools.

Start at `broker/README.md`. Imports go in one direction only, which import-linter enforces;
`ARCHITECTURE.md` has the chain. Nothing below `server` does IO except `log`, which accesses the
disk only through `log.storage`.
"""
