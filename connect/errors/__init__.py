"""The handling of a record that fails: retry it, skip it, report it, or fail the task.

`tolerance.py` decides, `dead_letters.py` builds the headers of a dead letter. Both are pure: time
and randomness are arguments, and the task runner waits, sends and counts.
"""
