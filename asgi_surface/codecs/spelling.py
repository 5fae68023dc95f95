"""Names of tools, and ids of calls, as an upstream's surface takes them: a reversible alias where the client's own do not fit.

An alias is made of the name alone, so that it is the same in every turn of a conversation. Knows no surface's rule.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from asgi_surface.codecs.base import Alias
from asgi_surface.errors import Code, RequestError
from asgi_surface.ir import Call, Form, Request, Tool

Key = TypeVar("Key", bound=Hashable)
Node = TypeVar("Node", Tool, Tool | Call)
_DIGITS: Final = 8


class Rule(Struct, frozen=True):
    """Which names a surface takes: `fits` matches one whole, `misfit` each character that cannot stand there, `longest` counts characters."""

    fits: re.Pattern[str]
    misfit: re.Pattern[str]
    longest: int

    def fitting(self, text: str) -> str:
        """The text itself, or its alias."""
        return text if self.fits.fullmatch(text) else self.alias(text, text)

    def alias(self, text: str, key: object) -> str:
        """A name that says `text` in brief; equal keys have equal ones."""
        digest = hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:_DIGITS]
        return f"{self.misfit.sub('_', text)[: self.longest - _DIGITS - 1]}_{digest}"


OPENAI: Final = Rule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), re.compile(r"[^a-zA-Z0-9_-]"), 64)
"""The names of functions on both of OpenAI's surfaces."""


def spelt(wanted: Iterable[tuple[Key, str]], rule: Rule) -> dict[Key, str]:
    """Every key with its text, or with an alias where that does not fit or is another's already."""
    fitted: dict[Key, str] = {}
    taken: set[str] = set()
    for key, text in wanted:
        if key not in fitted:
            fitted[key] = text if rule.fits.fullmatch(text) and text not in taken else rule.alias(text, key)
            taken.add(fitted[key])
    return fitted


def bare(nodes: Iterable[Node], name: str) -> Node | None:
    """The first with that name, whichever namespace it stands in: but one of no namespace has no other name, so that it is meant before them."""
    found = [node for node in nodes if node.name == name]
    return next((node for node in found if isinstance(node, Tool) and node.namespace is None), found[0] if found else None)


class Names:
    """What every tool of a request, and of its history, is called upstream, where there are no namespaces.

    Raises `RequestError` for a tool of another form under a name that is given: a choice, a call, or an upstream with one form only could not tell
    the two apart.
    """

    def __init__(self, request: Request, rule: Rule) -> None:
        parts = (part for turn in request.turns for part in turn.parts)
        used: list[Tool | Call] = [*request.tools, *(part for part in parts if isinstance(part, Call))]
        self.nodes: dict[tuple[str | None, str], Tool | Call] = {}
        for node in used:
            first = self.nodes.setdefault((node.namespace, node.name), node)
            if isinstance(node, Tool) and node.form is not first.form:
                raise RequestError(Code.UNREPRESENTABLE, "a tool of another kind has this name, and upstream both would be one", pointer=node.at)
        # A tool that can keep its name does, whatever the others would be shortened or flattened to.
        keys = sorted(self.nodes, key=lambda key: key[0] is not None or rule.fits.fullmatch(key[1]) is None)
        self._said = spelt(((key, "__".join(filter(None, key))) for key in keys), rule)

    def of(self, node: Tool | Call) -> str:
        """The name of a tool, or of the tool that was called."""
        return self._said[node.namespace, node.name]

    def chosen(self, name: str) -> tuple[Form, str]:
        """The form and name of a tool that a choice calls by its bare name. What is not offered any more is looked for last."""
        node = bare(self.nodes.values(), name)
        return (Form.FUNCTION, name) if node is None else (node.form, self.of(node))

    def aliases(self, *, custom: bool) -> Mapping[str, Alias]:
        """What the client calls the tools whose name or form is said another way; `custom` where the upstream has custom tools."""
        nodes = ((self.of(node), node) for node in self.nodes.values())
        return {
            said: Alias(node.name, node.form, node.namespace)
            for said, node in nodes
            if said != node.name or (node.form is Form.CUSTOM and not custom)
        }
