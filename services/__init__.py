"""The order pipeline: one folder per microservice, each a process of its own.

`README.md` says how to add one. Every service has the same files, as far as it needs them: `domain`
(the rules, pure), `store` (state kept between records), `app` (records and requests to rules and
back), `routes` (REST), `settings`, `__main__`. What they share is in `common`. Start one with, for
example, `python -m services.orders --bootstrap-servers 127.0.0.1:9092`.
"""
