"""Log lines, metrics and traces for operators.

The core publishes typed events (`foliot.model.event`). Observers here turn them into one kind of output each.
Telemetry imports only the model. It can't make the core fail or slow it down: an exception in a handler is
logged once per type of event and otherwise ignored.
"""
