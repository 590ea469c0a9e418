"""What shows the system to people: the order pipeline, orders at a rate, and what breaks.

`pipeline` is the demo, `load` sends orders at a rate and injects faults, `labs` show step by step
what clusters do when something breaks. All three start the other programs as processes
(`millstream.processes`), as the stack does.
"""
