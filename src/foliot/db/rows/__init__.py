"""Statements and conversions of rows that several services share."""
