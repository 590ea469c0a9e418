"""A console for people: what is in a Kafka cluster, and what can be changed in it, in a browser.

`__main__` serves it, `settings` is its command line, `app` puts it together. `console` has the
parts that views work with, and `cluster` owns the clients; `reading` reads records with them, and
`records` makes rows of those. `views` has the JSON of each view, `answers` its errors and what
every request has to pass, `page` the files that the browser loads.
"""
