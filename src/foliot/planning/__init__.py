"""Pure decisions: what is admitted, what fires, what is skipped and why, what is next.

Functions on frozen values, without a database; time is a parameter. The services and commands carry out
what these functions decide. Tests run them by the million.
"""
