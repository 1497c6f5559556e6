"""The routes of the REST API, one file per thing that they are about."""
