"""The clients of Kafka: `admin` and `producer` are librdkafka's, all others ask by aiokafka.

Whatever Kafka refuses becomes a refusal of ours in `errors`.
"""
