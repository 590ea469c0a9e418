"""What every process has: clock, settings, log lines, metrics, traces, garbage collector."""
