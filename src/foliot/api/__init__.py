"""HTTP: whether this instance lives and can do its work, and what it measures."""
