"""The transformations that ship with Kafka Connect, with the same names, settings and results.

Most of them exist as two classes, one for the key and one for the value (`ReplaceField$Key`,
`ReplaceField$Value`); `parts.py` has what they share. No code here does IO.
"""
