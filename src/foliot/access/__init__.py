"""Access control and protection of secrets: address guard, secrets, encryption, keys, tokens.

    address.py     which addresses an HTTP target may reach
    secrets.py     `${secret:name}`: find references, look up values, substitute them, redact them
    cipher.py      encryption of stored secrets, with key rotation
    callback.py    the token with which an agent proves that it received an attempt

Looking up secrets and fetching issuer keys do I/O; the rest is pure. Database rows are handled in `store`,
connections to targets in `target`.
"""
