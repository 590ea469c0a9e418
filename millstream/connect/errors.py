"""What goes wrong in Connect, with Kafka Connect's own names.

A connector raises these and the worker tells them apart: `RetriableException` is tried again,
`DataException` and any other in a converter or transformation may be tolerated, everything else
fails the task. `kafka_class` is what scripts written for Kafka Connect look for in a dead-letter
header or a trace.
"""

_PACKAGE = "org.apache.kafka.connect.errors"


class KafkaException(Exception):
    """What all errors of Kafka and Connect descend from."""

    kafka_class = "org.apache.kafka.common.KafkaException"


class ConfigException(KafkaException):
    """A setting is missing, or its value is not one it can have."""

    kafka_class = "org.apache.kafka.common.config.ConfigException"

    @classmethod
    def of_value(cls, name: str, value: object, message: str | None = None) -> "ConfigException":
        """Say which value of which setting is wrong, and why."""
        because = "" if message is None else f": {message}"
        return cls(f"Invalid value {text_of(value)} for configuration {name}{because}")


class ConnectException(KafkaException):
    """Connect or a connector cannot go on."""

    kafka_class = f"{_PACKAGE}.ConnectException"


class RetriableException(ConnectException):
    """What failed may work when it is tried again."""

    kafka_class = f"{_PACKAGE}.RetriableException"


class DataException(ConnectException):
    """A value, or a schema, is not what it has to be."""

    kafka_class = f"{_PACKAGE}.DataException"


class SchemaBuilderException(DataException):
    """A schema cannot be as it was asked for."""

    kafka_class = f"{_PACKAGE}.SchemaBuilderException"


class SchemaProjectorException(DataException):
    """A value of one schema cannot become one of another."""

    kafka_class = f"{_PACKAGE}.SchemaProjectorException"


class SerializationException(KafkaException):
    """Bytes are not what a deserializer expects, or cannot be made."""

    kafka_class = "org.apache.kafka.common.errors.SerializationException"


class NotFoundException(ConnectException):
    """What was asked for does not exist."""

    kafka_class = f"{_PACKAGE}.NotFoundException"


class AlreadyExistsException(ConnectException):
    """What was to be made exists."""

    kafka_class = f"{_PACKAGE}.AlreadyExistsException"


class IllegalWorkerStateException(ConnectException):
    """A method was called at a time it must not be called."""

    kafka_class = f"{_PACKAGE}.IllegalWorkerStateException"


def text_of(value: object) -> str:
    """Write a value into a message as Java would: null, true, [a, b]."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return f"[{', '.join(map(text_of, value))}]"
        case _:
            return str(value)
