"""Data types: schedules, triggers, targets, policies, executions, events, errors.

Plain values. Nothing in this folder uses a clock, a database, the network or an event loop, or imports
another folder of Foliot.
"""
