"""Pure decisions: what is admitted, what fires, what is skipped and why, what is next.

Functions on frozen values. Time is a parameter, the database is not here: the scheduler and the store carry
out what these functions decide, and tests run them by the million.
"""
