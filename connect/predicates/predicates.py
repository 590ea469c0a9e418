"""HasHeaderKey, RecordIsTombstone, TopicNameMatches: they select a transformation's records."""

from collections.abc import Mapping
from typing import Any, Final

from connect.java.patterns import RegexValidator, java_pattern
from millstream.connect import ConfigDef, Importance, Predicate
from millstream.connect.config.types import Type
from millstream.connect.config.validators import CompositeValidator, NonEmptyString
from millstream.connect.data.records import ConnectRecord

_PACKAGE = "org.apache.kafka.connect.transforms.predicates"
_HEADER = ConfigDef().define(
    "name", Type.STRING, Importance.MEDIUM, "The header's name.", validator=NonEmptyString()
)
_TOPIC = ConfigDef().define(
    "pattern",
    Type.STRING,
    Importance.MEDIUM,
    "A regular expression that must match the whole name of the topic.",
    validator=CompositeValidator(NonEmptyString(), RegexValidator()),
)


class _Predicate(Predicate[ConnectRecord]):
    @classmethod
    def version(cls) -> str:
        return "4.3.1"


class HasHeaderKey(_Predicate):
    """True for records that have a header with the configured name."""

    kafka_class = f"{_PACKAGE}.HasHeaderKey"

    @classmethod
    def config(cls) -> ConfigDef:
        return _HEADER

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._name: str = _HEADER.parse(configs)["name"]

    def test(self, record: ConnectRecord) -> bool:
        return record.headers.last_with_name(self._name) is not None


class RecordIsTombstone(_Predicate):
    """True for records without a value."""

    kafka_class = f"{_PACKAGE}.RecordIsTombstone"

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Do nothing: this predicate has no settings."""

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None


class TopicNameMatches(_Predicate):
    """True for records whose topic matches the configured pattern."""

    kafka_class = f"{_PACKAGE}.TopicNameMatches"

    @classmethod
    def config(cls) -> ConfigDef:
        return _TOPIC

    def configure(self, configs: Mapping[str, Any]) -> None:
        self._pattern = java_pattern(_TOPIC.parse(configs)["pattern"])

    def test(self, record: ConnectRecord) -> bool:
        return self._pattern.fullmatch(record.topic) is not None


PREDICATES: Final[tuple[type[Predicate[Any]], ...]] = (
    HasHeaderKey,
    RecordIsTombstone,
    TopicNameMatches,
)
