"""What the official API repeats of a request in its answer, said again from the client's own request. What the client did not say and the gateway
cannot know stays null, or is the API's own default where it holds by itself. Knows nothing of the answer.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from msgspec import Raw

from asgi_surface.ir import Choice, Form, Format, Pick, Request, Settings, Text, Tool

_Object = dict[str, object]
_EMPTY: Final = Raw(b"{}")


def echoed(request: Request) -> _Object:
    """The members of a response object that repeat the request."""
    settings = request.settings
    return {
        "background": False,
        "instructions": _instructions(request),
        "max_output_tokens": settings.max_tokens,
        "metadata": settings.metadata or _EMPTY,
        "parallel_tool_calls": settings.parallel is not False,
        "previous_response_id": None,
        "prompt_cache_key": settings.cache_key,
        "reasoning": _reasoning(request),
        "safety_identifier": settings.safety_id,
        "store": False,
        "temperature": settings.temperature,
        "text": _text(request.format, settings),
        "tool_choice": _choice(request.choice, request.tools),
        "tools": _tools(request.tools),
        "top_logprobs": settings.top_logprobs or 0,
        "top_p": settings.top_p,
        "truncation": "disabled",
        "user": settings.user,
    }


def _instructions(request: Request) -> str | None:
    """The member of that name: it is the turn that was lifted from it."""
    texts = [part.text for turn in request.turns if turn.at == "/instructions" for part in turn.parts if isinstance(part, Text)]
    return "".join(texts) if texts else None


def _reasoning(request: Request) -> _Object:
    effort = request.effort
    if effort is None:
        return {"effort": None, "summary": None}
    return {"effort": "none" if effort.off else effort.word, "summary": effort.summary}


def _text(wanted: Format | None, settings: Settings) -> _Object:
    verbosity = {} if settings.verbosity is None else {"verbosity": settings.verbosity}
    return {"format": _format(wanted), **verbosity}


def _format(wanted: Format | None) -> _Object:
    if wanted is None:
        return {"type": "text"}
    if wanted.schema is None:
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "description": wanted.description,
        "name": wanted.name,
        "schema": wanted.schema,
        "strict": wanted.strict,
    }


def _choice(choice: Choice | None, tools: tuple[Tool, ...]) -> object:
    if choice is None or choice.names is None:
        return "auto" if choice is None else choice.pick
    forms = {tool.name: tool.form for tool in tools}
    named: list[_Object] = [{"type": forms.get(name, Form.FUNCTION), "name": name} for name in choice.names]
    if choice.pick is Pick.REQUIRED and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "mode": choice.pick, "tools": named}


def _tools(tools: tuple[Tool, ...]) -> list[_Object]:
    """The tools in order, those of one namespace together as they stood."""
    said: list[_Object] = []
    for namespace, group in groupby(tools, lambda tool: tool.namespace):
        inner = list(group)
        own = [_TOOLS[tool.form](tool) for tool in inner]
        said += own if namespace is None else [_namespace(namespace, inner[0].namespace_description, own)]
    return said


def _namespace(name: str, description: str | None, tools: list[_Object]) -> _Object:
    return {"type": "namespace", "name": name, "description": description or "", "tools": tools}


def _function(tool: Tool) -> _Object:
    return {
        "type": "function",
        "description": tool.description,
        "name": tool.name,
        "parameters": tool.schema,
        "strict": tool.strict,
    }


def _custom(tool: Tool) -> _Object:
    return {
        "type": "custom",
        "description": tool.description,
        "name": tool.name,
        "format": {"type": "text"} if tool.grammar is None else tool.grammar,
    }


_TOOLS: Final = {Form.FUNCTION: _function, Form.CUSTOM: _custom}
