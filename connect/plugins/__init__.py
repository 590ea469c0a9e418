"""Finds plugins, and their names in configurations.

`scan.py` finds classes: ours (`built_in.py`), those of installed distributions (entry points of the
group `millstream.connectors`) and those in the folders of `plugin.path`. `catalogue.py` finds one
by the names it goes by. A plugin that cannot be imported is left out with a line in the log, and
everything else works.
"""
