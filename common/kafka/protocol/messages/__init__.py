"""The messages of Kafka's APIs, one module per API, each with its request and its response."""
