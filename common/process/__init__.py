"""What every process has: clock, settings, log lines, metrics, traces, garbage collector.

`clock` is the time and the random source; `settings`, `properties` and `json_text` read settings
and JSON, `command_parser` a command line, `patterns` regular expressions. `starting` shapes the
log, says where a server listens and makes the garbage collector run seldom, `telemetry` and
`traces` say what a process does. `tasks` starts tasks outside of a group, `ending` ends a process,
and `bounded_cache` is a cache with a limit in bytes.
"""
