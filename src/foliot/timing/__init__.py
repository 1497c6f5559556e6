"""When: fire times per trigger, windows, jitter, the timing wheel, the clock.

Everything here is pure but `clock.py`, the only place in Foliot that reads a clock. Instants are aware
datetimes in UTC.
"""
