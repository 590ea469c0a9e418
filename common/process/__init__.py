"""What every process has: clock, settings, log lines, metrics, traces, garbage collector.

`clock` is the time and the random source; `settings`, `properties` and `json_text` read settings
and JSON, `command_parser` a command line. `log_lines` shapes the log and says where a server
listens, `telemetry` and `traces` say what a process does. `tasks` starts tasks outside of a group,
`ending` ends a process, and `collector` says when garbage is collected.
"""
