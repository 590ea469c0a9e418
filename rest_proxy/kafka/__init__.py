"""The clients of Kafka: `admin` and `producer` use librdkafka, `metadata` our own client.

`errors` turns every error of Kafka into a refusal of the proxy.
"""
