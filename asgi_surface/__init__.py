"""An LLM gateway as one ASGI layer: declared surfaces, one plan per request, exactly one terminal.

`asgi_surface.app` is the gateway as `uvicorn asgi_surface:app` runs it, on the route file that `ASGI_SURFACE_ROUTES` names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from asgi_surface.errors import ConfigError, GatewayError, Problem, RequestError, UpstreamError
from asgi_surface.plans import Rejection, RequestPlan, RouteCandidate
from asgi_surface.surfaces import Feature, Operation, Surface
from asgi_surface.version import __version__

if TYPE_CHECKING:
    from asgi_surface.catalog import Catalog
    from asgi_surface.files import load_catalog
    from asgi_surface.interception import Interceptor, Rewriter
    from asgi_surface.layers.authentication import Authentication
    from asgi_surface.layers.conversion import Conversion
    from asgi_surface.layers.detection import SurfaceDetection
    from asgi_surface.layers.exchange import ASGIApp, Outcome
    from asgi_surface.layers.planning import Planning
    from asgi_surface.layers.relay import StreamRelay
    from asgi_surface.layers.stack import Gateway
    from asgi_surface.layers.whitelist import PolicyWhitelist
    from asgi_surface.planner import plan
    from asgi_surface.upstream.carried import Carried

    app: ASGIApp

__all__ = [
    "Authentication",
    "Carried",
    "Catalog",
    "ConfigError",
    "Conversion",
    "Feature",
    "Gateway",
    "GatewayError",
    "Interceptor",
    "Operation",
    "Outcome",
    "Planning",
    "PolicyWhitelist",
    "Problem",
    "Rejection",
    "RequestError",
    "RequestPlan",
    "Rewriter",
    "RouteCandidate",
    "StreamRelay",
    "Surface",
    "SurfaceDetection",
    "UpstreamError",
    "__version__",
    "app",
    "load_catalog",
    "plan",
]

# What needs the planner or the shell is imported when it is asked for, so that `import asgi_surface` stays light and free of cycles.
_HOMES: Final = {
    "Authentication": "layers.authentication",
    "Carried": "upstream.carried",
    "Catalog": "catalog",
    "Conversion": "layers.conversion",
    "Gateway": "layers.stack",
    "Interceptor": "interception",
    "Outcome": "layers.exchange",
    "Planning": "layers.planning",
    "PolicyWhitelist": "layers.whitelist",
    "Rewriter": "interception",
    "StreamRelay": "layers.relay",
    "SurfaceDetection": "layers.detection",
    "load_catalog": "files",
    "plan": "planner",
}


def __getattr__(name: str) -> Any:
    if name == "app":
        value: Any = __getattr__("Gateway")()
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"asgi_surface.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'asgi_surface' has no attribute {name!r}")
    globals()[name] = value
    return value
