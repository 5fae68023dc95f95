"""What OpenAI's two surfaces say of a wish in the same way: a budget of reasoning as a word, and a choice among tools that the server cannot read.

Knows neither of their wires.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from asgi_surface.codecs.base import Dialect
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Choice, Effort, Pick, Request
from asgi_surface.verdicts import Mention

EFFORTS: Final = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
"""The words for how much a model reasons."""


def sufficient(effort: Effort, dialect: Dialect) -> str:
    """The least word whose declared budget allows the effort's own, else the greatest. Raises `RequestError` where the binding declares none."""
    words = sorted(dialect.reasoning_budgets, key=dialect.reasoning_budgets.__getitem__)
    if not words:
        raise RequestError(Code.UNREPRESENTABLE, "this binding has no words for reasoning budgets", pointer=effort.at)
    return next((word for word in words if dialect.reasoning_budgets[word] >= (effort.budget or 0)), words[-1])


def offered(request: Request, dialect: Dialect) -> tuple[Request, tuple[Mention, ...]]:
    """The request, and how its choice is said another way: a server that reads words only is offered none but the tools that may be called.

    A choice of tools that are not there is left as it is, for the server to refuse.
    """
    choice = request.choice
    if dialect.tool_choice == "named" or choice is None or not choice.names or choice.pick is Pick.NONE:
        return request, ()
    tools = tuple(tool for tool in request.tools if tool.name in choice.names)
    if not tools:
        return request, ()
    return structs.replace(request, tools=tools, choice=Choice(choice.pick, at=choice.at)), (Mention("choice:offered", choice.at),)
