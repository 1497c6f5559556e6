"""Metrics, liveness and readiness of an instance.

The API serves them with its other routes. A process without the API has a small server for them, so that it
does not load a web framework.
"""
