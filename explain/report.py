"""An explanation as text and as JSON, and the table of all causes."""

import json
import re
import textwrap
from typing import Any, Final

from explain.causes.cause import Cause, Severity
from explain.explanations import TABLES, Explanation
from explain.words import name

WIDTH: Final = 100
MARKS: Final = {Severity.PROBLEM: "!", Severity.NOTICE: "*", Severity.FACT: "-"}
_COMMAND: Final = re.compile(r"`[^`]*`")
_GLUE: Final = "\xa0"
"""No sentence has it: in a name it would be escaped."""
_FIGURE: Final = re.compile(r"\{(\w+)[^}]*\}")


def text(found: Explanation) -> str:
    """Return sentences: problems behind `!`, notices behind `*`, facts behind `-`."""
    lines = [f"{name(found.subject)}: {_summary(found)}"]
    for one in found.findings:
        lines += _wrapped(f"{MARKS[one.severity]} ", one.sentence)
        if one.advice:
            lines += _wrapped("  > ", one.advice)
    return "\n".join(lines)


def _summary(found: Explanation) -> str:
    count = len(found.problems)
    if not count:
        is_known = not any(one.code.startswith("asking-") for one in found.findings)
        return "nothing is wrong." if is_known else "no problem in what is known."
    return "1 problem." if count == 1 else f"{count} problems."


def _wrapped(mark: str, sentence: str) -> list[str]:
    """Break a sentence into lines; a command in backticks stays in one piece, to be copied."""
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _GLUE), sentence)
    lines = textwrap.wrap(
        whole,
        WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]


def as_json(found: Explanation) -> str:
    """Return one object: subject, and findings with code, severity, sentence, advice, figures."""
    return json.dumps(as_object(found), default=str, ensure_ascii=True)


def as_object(found: Explanation) -> dict[str, Any]:
    """Return an explanation as plain values; a partition is `topic-number`."""
    return {
        "subject": found.subject,
        "problems": len(found.problems),
        "findings": [
            {
                "code": one.code,
                "severity": one.severity.value,
                "sentence": one.sentence,
                "advice": one.advice,
                "figures": {key: _plain(value) for key, value in one.figures.items()},
            }
            for one in found.findings
        ],
    }


def _plain(value: Any) -> Any:
    """Return a figure for JSON: the name of a partition is a tuple, but is written as one word."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def documentation() -> str:
    """Return all causes as tables of Markdown, for `docs/explain.md`."""
    parts = []
    for title, table in TABLES.items():
        rows = [f"| `{one.code}` | {one.severity.value} | {_template(one)} |" for one in table]
        head = [f"### {title}", "", "| cause | | what is said |", "|---|---|---|"]
        parts.append("\n".join([*head, *rows]))
    return "\n\n".join(parts) + "\n"


def _template(cause: Cause[Any]) -> str:
    parts = [_shown(cause.sentence)] + ([f"*{_shown(cause.advice)}*"] if cause.advice else [])
    return "<br>".join(parts)


def _shown(template: str) -> str:
    """Show the figures by their names in brackets: `{lag:record}` is `[lag]`."""
    return _FIGURE.sub(r"[\1]", template.replace("[", "").replace("]", "")).replace("|", "\\|")
