"""The dashboard: a web page over the serving store, live by server-sent events.

A process of its own that never imports Spark. `feed` follows the store, `app` serves, `page/` is
what the browser gets; plotly.js comes out of the installed plotly package.
"""

from common.http.certificates import read_when_needed

read_when_needed()
