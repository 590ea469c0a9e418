"""Faults on demand: which call a rule hits, what it does to it, and where an error goes. Pure.

    places     where each API has its errors, in each version, from the tables of the messages
    asked      what a request is about: topics, partitions, groups, transactions, from the same
    refusals   answers with an error, made from the request; the rest of the request is left
    rule       one rule, read from JSON and checked
    triggers   when a rule acts: times, on_call, always, with a probability
    rule_book  the rules that are armed, and their hits
    calls      the calls that clients made, for a test to look at

`broker.server.testing` does what the rules say, in a broker that is started with `--testing`.
Randomness is an argument, and so is the time.
"""
