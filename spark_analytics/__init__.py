"""PySpark over the pipeline's topics: a source and sink, the streaming job, and its dashboard.

`README.md` is the introduction. `session` creates the Spark session, `source` implements
`format("millstream")`, `jobs` turns events into figures, `serving` stores them, `dashboard` shows
them in a process without Spark. `settings` are the settings of both, `java` finds a Java, and
`declared` names the topics.
"""
