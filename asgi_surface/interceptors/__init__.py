"""Interceptors that come with the gateway. Each is a package of its own and knows no other."""
