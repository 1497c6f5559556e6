"""Who and what is let through: the address guard, secrets, encryption, tokens.

    address.py     which addresses an HTTP target may reach
    secrets.py     `${secret:name}`: found, looked up, put in place, and hidden wherever it might come out
    cipher.py      how stored secrets are encrypted, and under which of several keys
    callback.py    the token by which an agent proves that an attempt was given to it

Pure but for looking secrets up; the rows are the store's, the sockets are the target's.
"""
