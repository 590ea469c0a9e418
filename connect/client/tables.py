"""Tables as the other commands of `millstream` print them: wide as their cells, tabs between."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Sequence[object]


def table(headers: Sequence[str], rows: Iterable[Row]) -> str:
    """Give the lines of a table, each cell padded on the right."""
    lines = [headers, *([cell(each) for each in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "\n".join(
        "".join(f"{each:<{width}}\t" for each, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def cell(value: object) -> str:
    """Give a value as one line of text; whatever a terminal would obey is told by its number."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text) or '""'


def block(text: str) -> str:
    """Give several lines as they are, but for what a terminal would obey."""
    return "\n".join(
        "".join(each if each.isprintable() or each == "\t" else repr(each)[1:-1] for each in line)
        for line in text.splitlines()
    )


def connectors_table(shown: Mapping[str, Any]) -> str:
    """List connectors as `expand=status` shows them."""
    rows = []
    for name, each in sorted(shown.items()):
        status = each["status"]
        counts: dict[str, int] = {}
        for task in status["tasks"]:
            counts[task["state"]] = counts.get(task["state"], 0) + 1
        tasks = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        connector = status["connector"]
        rows.append(
            (name, status["type"], connector["state"], tasks or "none", connector["worker_id"])
        )
    return table(("NAME", "TYPE", "STATE", "TASKS", "WORKER"), rows)


def status_text(status: Mapping[str, Any]) -> str:
    """Show a connector and its tasks, and below why any of them failed."""
    parts = [("connector", status["connector"])]
    parts += [(f"task {task['id']}", task) for task in status["tasks"]]
    rows = [
        (part, each["state"], each["worker_id"], each.get("version"), each.get("restarts", 0))
        for part, each in parts
    ]
    lines = [table((cell(status["name"]), "STATE", "WORKER", "VERSION", "RESTARTS"), rows)]
    lines += [f"\n{part}:\n{block(each['trace'])}" for part, each in parts if each.get("trace")]
    lines += [f"\n{part}: {cell(each['note'])}" for part, each in parts if each.get("note")]
    return "\n".join(lines)


def has_failed(status: Mapping[str, Any]) -> bool:
    return any(each["state"] == "FAILED" for each in (status["connector"], *status["tasks"]))


def settings_table(config: Mapping[str, Any]) -> str:
    return table(("SETTING", "VALUE"), sorted(config.items()))


def tasks_table(tasks: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (each["id"]["task"], name, value)
        for each in tasks
        for name, value in sorted(each["config"].items())
    ]
    return table(("TASK", "SETTING", "VALUE"), rows)


def offsets_table(said: Mapping[str, Any]) -> str:
    rows = [(each["partition"], each["offset"]) for each in said["offsets"]]
    return table(("PARTITION", "OFFSET"), rows)


def mistakes_table(said: Mapping[str, Any]) -> str:
    """List what a validation found."""
    rows = [
        (each["value"]["name"], each["value"]["value"], error)
        for each in said["configs"]
        if each["value"] is not None
        for error in each["value"]["errors"]
    ]
    return table(("SETTING", "VALUE", "MISTAKE"), rows)


def plugins_table(plugins: Sequence[Mapping[str, Any]]) -> str:
    rows = [(each["class"], each["type"], each.get("version")) for each in plugins]
    return table(("CLASS", "TYPE", "VERSION"), rows)


def plugin_table(keys: Sequence[Mapping[str, Any]]) -> str:
    """List the settings of a plugin; one that has to be given has `required` for a default."""
    rows = [
        (
            key["name"],
            key["type"].lower(),
            "required" if key["required"] else key["default_value"],
            key["documentation"],
        )
        for key in keys
    ]
    return table(("SETTING", "TYPE", "DEFAULT", "WHAT IT IS"), rows)


def loggers_table(levels: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [(name, each["level"]) for name, each in sorted(levels.items())]
    return table(("LOGGER", "LEVEL"), rows)
