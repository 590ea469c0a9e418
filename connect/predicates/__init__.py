"""The predicates that ship with Kafka Connect. Everything here is pure."""
