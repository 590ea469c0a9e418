"""The `millstream` command: which program a command belongs to, its help and its completion.

The command has a process of its own, so it may put the folder of the programs on the path
(`millstream.__main__`) and import what they share. Nothing that users import does that.
"""
