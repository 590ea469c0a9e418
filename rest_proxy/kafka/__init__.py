"""The clients of Kafka: `producer` uses librdkafka, `admin` and `metadata` our own client.

`client_outcomes` has their settings, `waiting` bounds every question, and
`errors` turns every error of Kafka into a refusal of the proxy.
"""
