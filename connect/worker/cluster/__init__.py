"""What distributed workers do together.

`membership` joins the worker to its group; the leader writes the config topic
(`leader_log`, `kafka_logs`), and fences the producers of earlier tasks (`fencing`).
"""
