"""A development stack: brokers, schema registry, REST proxy and Connect, on ports everybody knows.

`programs` has the arguments that each of them is started with, here and in tests.
"""
