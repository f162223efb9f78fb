"""A bank's day of GPU work, played on the local cluster in a few minutes.

`day`, `clock`, `jobs`, `site`, `records`, `events`, `meter`, `ledger` and `summary` are pure;
`view` and `screen` draw; `run`, `stage`, `child`, `operator` and `player` do the I/O.
"""
