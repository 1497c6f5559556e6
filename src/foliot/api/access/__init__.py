"""Access of callers to the API: credentials, roles, rate limits and idempotency."""
