"""Finds the parser of a type of schemas. Each loads its library when it is first needed."""

from schemas.registry.questions import Named
from schemas.registry.records import AVRO
from schemas.registry.refusals import invalid_schema
from schemas.registry.schema_types.parsed_schema import ParsedSchema

JSON = "JSON"
PROTOBUF = "PROTOBUF"
SCHEMA_TYPES = (JSON, PROTOBUF, AVRO)


def parse(schema_type: str, text: str, named: Named) -> ParsedSchema:
    """Parse a schema. Raise RegistryError, 42201, for an invalid one."""
    match schema_type:
        case "AVRO":
            from schemas.registry.schema_types.avro import AvroSchema

            return AvroSchema(text, named)
        case "JSON":
            from schemas.registry.schema_types.json_schema import JsonSchema

            return JsonSchema(text, named)
        case "PROTOBUF":
            from schemas.registry.schema_types.protobuf import ProtobufSchema

            return ProtobufSchema(text, named)
        case _:
            pass
    known = ", ".join(SCHEMA_TYPES)
    raise invalid_schema(f"Invalid schema type {schema_type}, known: {known}")
