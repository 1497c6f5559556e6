"""What every use of a broker shares: addresses, clients, timeouts and errors."""
