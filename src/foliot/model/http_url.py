"""Checks of URLs that Foliot sends requests to."""

from urllib.parse import urlsplit


def require_http_url(value: str) -> str:
    """Return the URL. Raises a ValueError that says why no request may be sent to it."""
    if any(ord(character) <= 32 or ord(character) == 127 for character in value):
        raise ValueError("must not contain spaces or control characters")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https"):
        raise ValueError("must start with http:// or https://")
    if "${" in parts.netloc:
        raise ValueError("must name its host and port literally; a secret may only stand behind them")
    if not parts.hostname:
        raise ValueError("must name a host")
    if "@" in parts.netloc:
        raise ValueError("must not carry a user or password; use a header with ${secret:name}")
    if "\\" in parts.netloc:
        raise ValueError("must not contain a backslash before the path")
    if parts.port == 0:
        raise ValueError("must not name port 0")
    return value
