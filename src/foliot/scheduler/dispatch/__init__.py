"""Publishes waiting executions to brokers."""
