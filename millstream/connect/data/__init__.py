"""Connect's own data: schemas, structs, logical types, headers, records.

A value travels with its schema, or without one. Python's types stand for Kafka's:

    INT8 .. INT64        int, in range       ARRAY    list or tuple
    FLOAT32, FLOAT64     float               MAP      dict
    BOOLEAN              bool                STRUCT   Struct
    STRING               str                 Decimal, Date, Time, Timestamp: decimal.Decimal,
    BYTES                bytes               datetime.date, .time, .datetime (with a time zone)

Start with `schema.py`. Nothing here does IO.
"""
