"""The HTTP server: health, readiness, metrics, the REST API and the UI."""
