"""What commands need that run in this process instead of through the API."""
