"""The only rooms that reach a provider: HTTP engines and embedded upstreams, each an ASGI app."""
