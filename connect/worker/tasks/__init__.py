"""The work of tasks, each in a thread of its own.

`factory` makes a task's work from its configuration: `source` with `at_least_once` or
`exactly_once` (at its `boundaries`), or `sink` with its `subscription` and `sink_context`, whose
`departures` end its memberships. `thread` runs the work; it starts, pauses and ends the task.
`steps` runs each conversion and transformation of a record under the connector's error settings,
`reporting` reports failed records, `own_metrics` collects what a task's code measures, and `spans`
tells OpenTelemetry of records that belong to a trace.
"""
