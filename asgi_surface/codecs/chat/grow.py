"""How a member of a message grows from delta to delta: texts by their pieces, objects member by member, lists element by element.

Knows which texts grow and which are said once, and nothing else of what members mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

Tree = dict[str, Any]

# Texts within objects and lists that come in pieces. The others (ids, types, addresses, signatures) come whole.
_PIECES: Final = frozenset({"text", "thinking", "summary", "data", "transcript", "content", "refusal"})
# Parts of a list without numbers of their own that go on in the next delta.
_GOES_ON: Final = frozenset({"text", "thinking"})


class Words(list[str]):
    """A text as its pieces."""


def grown(old: Any, new: Any, name: str = "", *, always: bool = False) -> Any:
    """What a member is after one more delta. `always` says that its text grows whatever its name; null says nothing."""
    if isinstance(old, Words) and isinstance(new, list):
        old = [{"type": "text", "text": old}]
    if isinstance(new, str):
        if isinstance(old, list) and not isinstance(old, Words):
            return _joined(old, [{"type": "text", "text": new}])
        return _text(old, new, grows=always or name in _PIECES)
    if isinstance(new, dict):
        known = old if isinstance(old, dict) else {}
        known.update({key: grown(known.get(key), value, key) for key, value in new.items()})
        return known
    if isinstance(new, list):
        return _joined(old if isinstance(old, list) else [], new)
    return old if new is None else new


def _text(old: Any, new: str, *, grows: bool) -> Words:
    kept = old if grows and isinstance(old, Words) else Words()
    kept.append(new)
    return kept


def _joined(kept: list[Any], news: Iterable[Any]) -> list[Any]:
    for new in news:
        place = _place(kept, new)
        if place is None:
            kept.append(grown(None, new))
        else:
            kept[place] = grown(kept[place], new)
    return kept


def _place(kept: list[Any], new: Any) -> int | None:
    """The element that this one continues: that with its number and type, or the last of its type where parts go on."""
    if not isinstance(new, dict):
        return None
    kind, number = new.get("type"), new.get("index")
    if number is not None:
        return next((at for at, one in enumerate(kept) if one.get("index") == number and kind in (None, plain(one.get("type")))), None)
    last = kept[-1] if kept and isinstance(kept[-1], dict) else {}
    return len(kept) - 1 if kind in _GOES_ON and plain(last.get("type")) == kind else None


def plain(tree: Any) -> Any:
    """The value, its texts put together."""
    if isinstance(tree, Words):
        return "".join(tree)
    if isinstance(tree, dict):
        return {name: plain(value) for name, value in tree.items()}
    return [plain(one) for one in tree] if isinstance(tree, list) else tree
