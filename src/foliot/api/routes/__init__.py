"""The routes of the REST API, one file per kind of resource."""
