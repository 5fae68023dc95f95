"""What of a conversation a surface says in another place or under another id than the client did. Its order is the surface's; here it is told.

Knows no surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from asgi_surface.ir import Call, Document, Inline, Part, Reasoning, Request, Result, Role, Stored, Text, Turn
from asgi_surface.verdicts import Mention


def before_words(turns: Iterable[Turn]) -> Iterator[Mention]:
    """Results that are said before words that stood before them: those of a turn, or of neighbouring turns, follow the calls at once."""
    for by_model, run in groupby(turns, key=_by_model):
        yield from behind([] if by_model else [part for turn in run if turn.role is Role.USER for part in turn.parts])


def behind(parts: Sequence[Part]) -> Iterator[Mention]:
    """The results among these parts that stand behind something else."""
    first = next((index for index, part in enumerate(parts) if not isinstance(part, Result)), len(parts))
    return (Mention("order:result", part.at) for part in parts[first:] if isinstance(part, Result))


def before_calls(turns: Iterable[Turn]) -> Iterator[Mention]:
    """Words of a model that are said before calls that stood before them."""
    for by_model, run in groupby(turns, key=_by_model):
        parts = [part for turn in run for part in turn.parts] if by_model else []
        first = next((index for index, part in enumerate(parts) if isinstance(part, Call)), len(parts))
        yield from (Mention("order:words", part.at) for part in parts[first:] if not isinstance(part, Call | Reasoning))


def behind_users(turns: Iterable[Turn]) -> Iterator[Mention]:
    """Instructions between turns that are said behind a user's turn that stood behind them."""
    for by_model, run in groupby(turns, key=_by_model):
        others = [] if by_model else list(run)
        last = max((index for index, turn in enumerate(others) if turn.role is Role.USER), default=0)
        yield from (Mention("order:instruction", turn.at) for turn in others[:last] if turn.role is not Role.USER)


def joined(request: Request) -> Iterator[Mention]:
    """Results whose texts become one, before what is no text."""
    for result in _results(request):
        texts = [isinstance(part, Text) for part in result.parts]
        if sum(texts) > 1 or texts != sorted(texts, reverse=True):
            yield Mention("result:joined", result.at)


def other_ids(request: Request, said: Callable[[str], str]) -> Iterator[Mention]:
    """Calls whose id the surface does not take. It is only a link, replaced alike in the call and its result."""
    return (Mention("call:id", part.at) for turn in request.turns for part in turn.parts if isinstance(part, Call) and said(part.id) != part.id)


def made_names(request: Request) -> Iterator[Mention]:
    """Documents whose name is made because bytes need one."""
    return (Mention("document:name", part.at) for part in _documents(request) if part.name is None and isinstance(part.source, Inline))


def left_names(request: Request) -> Iterator[Mention]:
    """Documents whose name is left out beside their id."""
    return (Mention("document:name", part.at) for part in _documents(request) if part.name is not None and isinstance(part.source, Stored))


def _documents(request: Request) -> Iterator[Document]:
    return (part for turn in request.turns for part in _inner(turn.parts) if isinstance(part, Document))


def _by_model(turn: Turn) -> bool:
    return turn.role is Role.ASSISTANT


def _results(request: Request) -> Iterator[Result]:
    return (part for turn in request.turns for part in turn.parts if isinstance(part, Result))


def _inner(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        yield from part.parts if isinstance(part, Result) else ()
