"""Every refusal of the registry: Confluent's codes and sentences.

The first three digits of a code are the HTTP status (docs.confluent.io, "Schema Registry API
reference", errors).
"""


class RegistryError(Exception):
    """A refusal with its code and a sentence for the caller."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code

    @property
    def http_status(self) -> int:
        return self.error_code if self.error_code < 1000 else self.error_code // 100


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | str | None = None) -> RegistryError:
    return RegistryError(40403, f"Schema {'' if schema_id is None else f'{schema_id} '}not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted."
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being "
        "permanently deleted",
    )


def no_subject_config(subject: str) -> RegistryError:
    return RegistryError(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def no_subject_mode(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible_schema(subject: str, messages: list[str]) -> RegistryError:
    details = ", ".join(messages)
    return RegistryError(
        40901,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{details}]',
    )


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(42201, reason)


def invalid_version(text: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{text}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_compatibility_level() -> RegistryError:
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode(
    message: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
) -> RegistryError:
    return RegistryError(42204, message)


def not_permitted(message: str) -> RegistryError:
    return RegistryError(42205, message)


def reference_exists(subject: str, version: int) -> RegistryError:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(42206, f"One or more references exist to the schema {key}.")


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def schema_too_large() -> RegistryError:
    return RegistryError(42209, "Register operation failed because schema is too large")


def too_many_requests() -> RegistryError:
    return RegistryError(429, "HTTP 429 Too Many Requests: wait for the schemas that are checked")


def store_error(reason: str) -> RegistryError:
    return RegistryError(50001, f"Error in the backend data store: {reason}")


def operation_timeout(operation: str) -> RegistryError:
    return RegistryError(50002, f"{operation} operation timed out")


def forwarding_failed(reason: str) -> RegistryError:
    return RegistryError(50003, f"Error while forwarding the request to the leader: {reason}")


def unknown_leader() -> RegistryError:
    return RegistryError(50004, "Leader not known.")
