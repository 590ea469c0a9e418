"""What every service is made of.

`processor` is the heart: it feeds a service's `Worker` with records and commits what the worker
puts out, the rows it changed and the offsets behind them in one transaction. `changelog` keeps
state, `table` follows a whole topic, `errands` does what lies outside of Kafka, `requests` writes
records that a client waits for, `runner` starts and stops it all.
"""

from common.http.certificates import read_when_needed

read_when_needed()
