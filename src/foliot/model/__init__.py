"""What things are: schedules, triggers, targets, policies, executions, events, errors.

Plain values. Nothing in this room touches a clock, a database, the network or an event loop, and nothing
here imports another room of Foliot.
"""
