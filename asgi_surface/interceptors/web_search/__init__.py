"""Web search redirection: a hosted search in a client's request becomes a function for the model, and its calls searches at the operator's back end.

By task: `hook` (when, and the session of one request), `backend` (the HTTP call), one file a client surface (what it says of a search), and what
those share (`words`, `openai`).
"""

from __future__ import annotations

from asgi_surface.interceptors.web_search.hook import WebSearch

__all__ = ["WebSearch"]
