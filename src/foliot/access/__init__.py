"""Access control and protection of secrets: address guard, secrets, encryption, keys, tokens.

    address_guard.py     which addresses an HTTP target may reach
    secrets.py           `${secret:name}`: find references, look up values, substitute them, redact them
    cipher.py            encryption of stored secrets, with key rotation
    callback_tokens.py   the token with which an agent proves that it received an attempt
    jwt_tokens.py        tokens of an external issuer
    audit.py             who changed what

Rows of keys, secrets and idempotency keys are in the files with `_sql` in their names, and in `hosts.py` and
`sessions.py`.
"""
