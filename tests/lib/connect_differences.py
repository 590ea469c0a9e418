"""The intended differences between the answers of Millstream's Connect worker and Apache Kafka's.

connect/README.md describes them for users. Any other difference is an error.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.lib.connect_calls import Answer, Call

_OWN_SETTING: Final = "errors.task.restart.max.delay.ms"
_OTHER_WORDS: Final = (
    "contains no connector type",
    "Failed to find any class that implements Connector",
    "Invalid regex",
)


class Difference(NamedTuple):
    reason: str
    explains: Callable[[Call, Answer, Answer], bool]
    """Gets the call, Apache's answer and Millstream's."""


def explained(call: Call, theirs: Answer, ours: Answer) -> str | None:
    """Return the reason why the answers differ; None if there is no reason."""
    return next((each.reason for each in DIFFERENCES if each.explains(call, theirs, ours)), None)


def _is_said_to_be_the_askers(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Millstream's refusal names the error; Apache's has a message of a Java exception."""
    del call
    return theirs.status == 500 and 400 <= ours.status < 500 and bool(ours.body["message"])


def _is_before_the_tasks(call: Call, theirs: Answer, ours: Answer) -> bool:
    del call
    if (theirs.status, ours.status) != (201, 201) or ours.body["tasks"]:
        return False
    return {**theirs.body, "tasks": []} == ours.body and theirs.location == ours.location


def _is_in_other_words(call: Call, theirs: Answer, ours: Answer) -> bool:
    del call
    if (theirs.status, ours.status) != (400, 400) or not isinstance(theirs.body, dict):
        return False
    said = theirs.body["message"], ours.body["message"]
    return any(all(words in each for each in said) for words in _OTHER_WORDS)


def _has_more_plugins(call: Call, theirs: Answer, ours: Answer) -> bool:
    if call.path.rstrip("/") != "/connector-plugins":
        return False
    return [each for each in ours.body if each in theirs.body] == theirs.body


def _has_other_settings(call: Call, theirs: Answer, ours: Answer) -> bool:
    is_of_settings = call.path.startswith("/connector-plugins/") and "/config" in call.path
    if not is_of_settings or (theirs.status, ours.status) != (200, 200):
        return False
    if call.path.endswith("/config"):
        return _same_settings(theirs.body, ours.body)
    without = {**theirs.body, "configs": []}, {**ours.body, "configs": []}
    return without[0] == without[1] and _same_settings(theirs.body["configs"], ours.body["configs"])


def _same_settings(theirs: list[Any], ours: list[Any]) -> bool:
    here = [each for each in ours if _setting(each) != _OWN_SETTING]
    if len(here) + 1 != len(ours) or list(map(_setting, here)) != list(map(_setting, theirs)):
        return False
    return all(_same_setting(one, other) for one, other in zip(theirs, here, strict=True))


def _setting(info: dict[str, Any]) -> str:
    name: str = info["value"]["name"] if "value" in info else info["name"]
    return name


def _same_setting(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    if "value" not in theirs:
        return theirs == ours
    their_value, our_value = ({**each["value"]} for each in (theirs, ours))
    proposed = set(their_value.pop("recommended_values"))
    # Millstream has more converters.
    if not proposed <= set(our_value.pop("recommended_values")):
        return False
    return theirs["definition"] == ours["definition"] and their_value == our_value


def _is_an_odd_path(call: Call, theirs: Answer, ours: Answer) -> bool:
    """Jetty refuses paths with an encoded slash, a NUL or invalid UTF-8, with an HTML page."""
    if "%ff" in call.path.lower():
        return theirs.status == ours.status == 400 and "UTF-8" in ours.body["message"]
    is_odd = any(odd in call.path.lower() for odd in ("%2f", "%00"))
    return is_odd and theirs.status == 400 and ours.status in (200, 204, 404)


def _is_a_name_with_a_slash(call: Call, theirs: Answer, ours: Answer) -> bool:
    if theirs.body != ours.body or call.body is None or "/" not in str(call.body.get("name")):
        return False
    return ours.location == str(theirs.location).replace("/a/", "/a%2F")


DIFFERENCES: Final = [
    Difference(
        "Apache's worker breaks and answers 500 with the words of a Java exception; ours answers "
        "4xx and says what was wrong with the request",
        _is_said_to_be_the_askers,
    ),
    Difference(
        "Apache's standalone worker answers when the tasks are made; ours, as Apache's distributed "
        "worker, when the configuration is kept",
        _is_before_the_tasks,
    ),
    Difference(
        "the message shows names of settings, not their values, which may be secrets; classes "
        "without Java's descriptions; Python's words for a broken pattern",
        _is_in_other_words,
    ),
    Difference("ours ships more connectors", _has_more_plugins),
    Difference(
        "ours has errors.task.restart.max.delay.ms, and more converters to propose",
        _has_other_settings,
    ),
    Difference(
        "ours finds connectors of any name, and refuses a path that is no UTF-8 in JSON",
        _is_an_odd_path,
    ),
    Difference("ours encodes a slash in the address of a new connector", _is_a_name_with_a_slash),
]
