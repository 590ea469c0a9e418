"""The settings of a connector's configuration, and its validation. Pure.

`connector.py` defines the settings of every connector, and `plugged.py` those of its
transformations and predicates. `validation.py` combines them and checks a configuration, as
`PUT /connector-plugins/{plugin}/config/validate` does.
"""
