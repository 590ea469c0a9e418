"""Transactions under chaos: copies that happen exactly once, and money that is never lost.

*Copiers* are processes that read a topic, write each record to another, and commit their positions
in the same transaction; they are killed, and so are brokers. *Transfers* are transactions that take
an amount from one account and give it to another; some are taken back on purpose. Readers read the
accounts from the start again and again (read_committed).

`checker` judges and knows nothing of clusters; `__main__` makes the faults, `load` and `copier` all
that goes on meanwhile: see `make chaos TRANSACTIONS=1`.
"""
