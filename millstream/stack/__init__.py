"""A development stack: brokers, schema registry, REST proxy and Connect, on well-known ports.

`programs` has the arguments with which each program is started, here and in tests.
"""
