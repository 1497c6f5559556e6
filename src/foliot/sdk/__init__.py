"""The Python SDK: the application object, transactions, a client, and the ASGI application."""
