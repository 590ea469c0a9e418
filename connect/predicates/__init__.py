"""The predicates that ship with Kafka Connect. No code here does IO."""
