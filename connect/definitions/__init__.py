"""What a connector's configuration may say, and what is wrong with one. Pure.

`connector.py` defines the settings every connector has, `plugged.py` those of its transformations
and predicates, `topics.py` those of the topics it creates; `validation.py` puts a whole
configuration together and checks it, as `PUT /connector-plugins/{plugin}/config/validate` shows.
"""
