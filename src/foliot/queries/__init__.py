"""Reads for lists and pages. They change nothing."""
