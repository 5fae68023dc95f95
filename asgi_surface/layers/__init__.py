"""The shell: pure ASGI middlewares, one job each."""
