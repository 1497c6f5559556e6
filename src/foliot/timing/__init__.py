"""Fire times of triggers, windows, jitter, the timing wheel, and the clock.

Everything here is pure except `clock.py`, the only module of Foliot that reads a clock. Instants are aware
datetimes in UTC.
"""
