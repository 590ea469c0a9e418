"""The dashboard: a web page over the serving store, live by server-sent events.

It is a process that never imports Spark. `feed` follows the store, `app` has the routes, `page/` is
the browser's part; plotly.js comes from the installed plotly package.
"""
