"""HTTP below the routes: the server, middleware, bodies and errors."""
