"""What happens to a record that cannot be processed: tried again, skipped, reported, or the end.

`tolerance.py` decides, `dead_letters.py` writes what a dead letter tells. Both are pure: time and
randomness are arguments, and the task runner waits, sends and counts.
"""
