"""What Foliot tells its operators: log lines, metrics and traces.

The core says what happened as typed events (`foliot.model.event`); each file here is an observer that turns
them into one kind of output. Telemetry imports the model and nothing else of Foliot, and nothing in it can
fail or slow down the core: a handler that raises is reported once and otherwise swallowed.
"""
