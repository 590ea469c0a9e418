"""The clients of Kafka: `admin` and `producer` use librdkafka, all others use aiokafka.

`errors` turns every error of Kafka into a refusal of the proxy.
"""
