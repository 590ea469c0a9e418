"""PySpark over the pipeline's topics: a source and sink, the jobs, and their dashboard.

Start at `README.md`. `session` makes the Spark session, `source` is `format("millrace")`, `jobs`
turn events into figures, `serving` keeps them, `dashboard` shows them (never inside Spark).
"""
