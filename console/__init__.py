"""A console for people: what is in a Kafka cluster, and what can be changed in it, in a browser.

`__main__` serves it, `settings` is its command line, `app` puts it together. `console` has the
parts that views work with; `cluster` owns Kafka's clients, `http_calls` asks other servers, and
`own_stack` is the stack that the console belongs to. `reading` reads records, `records` makes rows
of them, and `writing` writes records; `group_lags` says how far groups are behind, and `watching`
what happens in the cluster. `views` has the JSON of each view, `answers` its errors and what every
request has to pass, `page` the files that the browser loads.
"""
