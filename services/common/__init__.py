"""What every service is made of.

`processor` is the heart: it feeds a service's `Worker` with records, flushes what the worker
puts out, and only then commits offsets. `changelog` keeps state, `table` follows a whole topic,
`events` turns bytes into events, `kafka` knows the topics, `assignment` who gets which
partition, `web` answers over HTTP, `runner` starts and stops it all.
"""

from pages.certificates import read_when_needed

read_when_needed()
