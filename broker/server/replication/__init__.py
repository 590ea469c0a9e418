"""The partitions of this broker: their files and roles, appends, and requests that wait."""
