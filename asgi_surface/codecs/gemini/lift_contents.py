"""The conversation of a Gemini request as turns. Knows nothing of settings, tools or targets.

Gemini pairs calls and results by id, or, where there are none, by name and order; the other surfaces by id only. So calls without an id are
numbered, and results find theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Raw, Struct, structs
from msgspec.json import Decoder

from asgi_surface import ir, seals
from asgi_surface.codecs.gemini.lift_texts import whole
from asgi_surface.codecs.gemini.lift_thoughts import Thoughts
from asgi_surface.codecs.gemini.values import Uses, Value
from asgi_surface.errors import Code, RequestError
from asgi_surface.members import Members
from asgi_surface.surfaces import GEMINI

_ROLES: Final = {"user": ir.Role.USER, "model": ir.Role.ASSISTANT, "function": ir.Role.USER}
_SIDES: Final = frozenset(
    {
        "videoMetadata",
        "mediaResolution",
        "partMetadata",
        "audioTranscription",
        "mediaProcessing",
        "speechMetadata",
        "documentMetadata",
        "spreadsheetMetadata",
        "audioMetadata",
    }
)
_GOOGLE_RAN: Final = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_BARE: Final = frozenset({"output", "result", "error"})
"""Keys under which a tool's output stands alone."""


def conversation(top: Mapping[str, Value], uses: Uses) -> tuple[ir.Turn, ...]:
    """The instructions and every content, in order. What only ended a stream, or was told in another's place, leaves no turn."""
    reader = _Reader(uses)
    if "systemInstruction" in top:
        reader.instructions(top["systemInstruction"])
    if "contents" in top:
        uses.note("field:contents", top["contents"].at)
        for content in top["contents"].items():
            reader.read(content)
        reader.end()
    return tuple(turn for turn in whole(reader.turns) if turn.parts or turn.role is ir.Role.USER or turn.at in reader.bare)


class _Waiting(Struct, frozen=True):
    id: str
    name: str
    minted: bool


class _Calls:
    """Which calls wait for a result."""

    def __init__(self) -> None:
        self._count = 0
        self._seen: set[str] = set()
        self._waiting: list[_Waiting] = []

    def open(self, name: str, given: str) -> str:
        """The id of a new call: its own, or its number among all calls."""
        free = (f"call_{number}" for number in itertools.count(self._count) if f"call_{number}" not in self._seen)
        chosen = given or next(free)
        self._count += 1
        self._seen.add(chosen)
        self._waiting.append(_Waiting(chosen, name, not given))
        return chosen

    def answer(self, name: str, given: str) -> _Waiting | None:
        """The call that a result answers: by id, else the first of its name that waits and has none."""
        of_name = (call for call in self._waiting if call.name == name and (call.minted or not given))
        found = next((call for call in self._waiting if call.id == given), None) or next(of_name, None)
        if found is not None:
            self._waiting.remove(found)
        return found


class _Reader:
    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._calls = _Calls()
        self._thoughts = Thoughts(uses)
        self._role = ir.Role.USER  # of the content that is read
        self.turns: list[ir.Turn] = []
        self.bare: set[str] = set()  # contents without parts
        self._readers: dict[str, Callable[[Value, str, ir.Seal | None], Iterator[ir.Part]]] = {
            "functionCall": self._call,
            "functionResponse": self._result,
            "inlineData": self._media,
            "fileData": self._media,
        }

    def instructions(self, content: Value) -> None:
        self._uses.note("field:systemInstruction", content.at)
        fields = content.members({"parts", "role"})
        parts = fields["parts"].items() if "parts" in fields else []
        self.turns.append(ir.Turn(ir.Role.SYSTEM, tuple(text for part in parts for text in self._instruction(part)), content.at))

    def _instruction(self, part: Value) -> Iterator[ir.Text]:
        fields = part.members(_PART)
        if {name for name, value in fields.items() if name == "text" or value.said} == {"text"}:
            self._uses.note("part:text", part.at)
            yield ir.Text(fields["text"].text(), part.at)
        else:
            self._uses.note("field:systemInstruction.parts", part.at)

    def read(self, content: Value) -> None:
        """Reads a content, which is a turn."""
        fields = content.members({"parts", "role"})
        role = fields["role"].text() if "role" in fields else "user"
        place = fields["role"].at if "role" in fields else content.at
        if role not in _ROLES:
            raise RequestError(Code.UNREPRESENTABLE, "a role that Gemini does not know", pointer=place)
        self._uses.note(f"role:{role}", place)
        if _ROLES[role] is not self._role:
            self.end()
        self._role = _ROLES[role]
        parts = fields["parts"].items() if "parts" in fields else []
        self.bare |= set() if parts else {content.at}
        self.turns.append(ir.Turn(self._role, tuple(said for part in parts for said in self._part(part)), content.at))

    def end(self) -> None:
        """Gives the last turn the thought that nothing came behind."""
        for thought in self._thoughts.end():
            self.turns[-1] = structs.replace(self.turns[-1], parts=(*self.turns[-1].parts, thought))

    def _part(self, part: Value) -> Iterator[ir.Part]:
        fields = part.members(_PART)
        self._uses.each("part:", fields, _SIDES)
        data = [name for name in fields if name in _DATA]
        if len(data) > 1 or not (data or "thoughtSignature" in fields):
            part.malformed()
        seal = self._seal(fields.get("thoughtSignature"))
        if not data or data[0] == "text":
            yield from self._words(fields, part.at, seal)
            return
        yield from self._thoughts.end()
        if data[0] in _GOOGLE_RAN:
            self._uses.note(f"part:{data[0]}", part.at)
        else:
            yield from self._sealed(data[0], fields, part.at, seal)

    def _seal(self, value: Value | None) -> ir.Seal | None:
        if value is None or not value.said:
            return None
        seal = seals.from_googles_slot(value.text())
        self._uses.note("part:thoughtSignature.none" if seal is None else "part:thoughtSignature", value.at)
        return seal

    def _words(self, fields: Mapping[str, Value], at: str, seal: ir.Seal | None) -> Iterator[ir.Part]:
        """Text or thought. A token on text stands before it as reasoning whose words are hidden; alone on an empty part it stays.

        A model's empty text without a token says nothing: it only ended a stream.
        """
        text = fields["text"].text() if "text" in fields else ""
        if "thought" in fields and fields["thought"].flag():
            yield from self._thoughts.add(text, seal, at)
            return
        if text or seal is not None:
            yield from self._thoughts.end()
        if seal is not None:
            yield ir.Reasoning("", seal, fields["thoughtSignature"].at)
        if text or (seal is None and "text" in fields and self._role is ir.Role.USER):
            self._uses.note("part:text", at)
            yield ir.Text(text, at)

    def _sealed(self, name: str, fields: Mapping[str, Value], at: str, seal: ir.Seal | None) -> Iterator[ir.Part]:
        """A part with its token. Only Gemini's own belongs to a call; another upstream's reasoning came before it."""
        own = name == "functionCall" and (seal is None or seal.surface == GEMINI)
        if seal is not None and not own:
            yield ir.Reasoning("", seal, fields["thoughtSignature"].at)
        yield from self._readers[name](fields[name], at, seal if own else None)

    def _call(self, value: Value, at: str, seal: ir.Seal | None) -> Iterator[ir.Part]:
        self._uses.note("part:functionCall", at)
        fields = value.members({"id", "name", "args", "partialArgs", "willContinue"})
        self._uses.each("part:functionCall.", fields, ("partialArgs", "willContinue"))
        if "name" not in fields:
            value.malformed()
        name, given = fields["name"].text(), fields["id"].text() if "id" in fields else ""
        arguments = fields["args"].object() if "args" in fields else "{}"
        yield ir.Call(self._calls.open(name, given), name, arguments, seal=seal, minted=not given, at=at)

    def _result(self, value: Value, at: str, _: ir.Seal | None) -> Iterator[ir.Part]:
        self._uses.note("part:functionResponse", at)
        fields = value.members({"id", "name", "response", "parts", "willContinue", "scheduling"})
        self._uses.each("part:functionResponse.", fields, ("willContinue", "scheduling"))
        name, given = (fields[key].text() if key in fields else "" for key in ("name", "id"))
        call = self._calls.answer(name, given)
        if call is None:
            raise RequestError(Code.UNREPRESENTABLE, "a result that answers no call", pointer=at)
        text, failed = _output(fields.get("response"))
        if failed:
            self._uses.note("part:functionResponse.error", fields["response"].at)
        parts = tuple(self._attached(fields["parts"])) if "parts" in fields else ()
        yield ir.Result(call.id, (ir.Text(text), *parts), failed=failed, name=call.name, at=at)

    def _attached(self, value: Value) -> Iterator[ir.Image | ir.Document]:
        for part in value.items():
            self._uses.note("part:functionResponse.parts", part.at)
            fields = part.members(_SIDES | {"inlineData", "fileData"})
            self._uses.each("part:", fields, _SIDES)
            for name in ("inlineData", "fileData"):
                yield from self._seen(self._media(fields[name], part.at, None)) if name in fields else ()

    def _seen(self, media: Iterator[ir.Image | ir.Document | ir.Audio]) -> Iterator[ir.Image | ir.Document]:
        for part in media:
            if isinstance(part, ir.Audio):
                self._uses.note("part:functionResponse.parts.audio", part.at)
            else:
                yield part

    def _media(self, value: Value, at: str, _: ir.Seal | None) -> Iterator[ir.Image | ir.Document | ir.Audio]:
        fields = value.members({"data", "fileUri", "mimeType", "displayName"})
        if ("data" in fields) == ("fileUri" in fields):
            value.malformed()
        mime, name = (fields[key].text() if key in fields else "" for key in ("mimeType", "displayName"))
        source = _source(fields, mime)
        part = "part:inlineData" if isinstance(source, ir.Inline) else "part:fileData"
        kind = "stored" if isinstance(source, ir.Link) and _at_google(source.url) else _kind(mime)
        self._uses.note(part, at)
        self._uses.note(f"{part}.{kind}", at)
        if kind in _MAKERS:
            yield _MAKERS[kind](source, name, at)
        if name and kind != "document":
            self._uses.note(f"{part}.displayName", fields["displayName"].at)


def _source(fields: Mapping[str, Value], mime: str) -> ir.Inline | ir.Link:
    """google-genai writes base64 in the URL-safe alphabet."""
    if "fileUri" in fields:
        return ir.Link(fields["fileUri"].text(), mime)
    return ir.Inline(mime, fields["data"].text().translate(_STANDARD))


def _at_google(uri: str) -> bool:
    """Whether only Google can read it: cloud storage, and what was uploaded to its Files API."""
    return not uri.startswith(("https://", "http://")) or uri.startswith("https://generativelanguage.googleapis.com/")


def _kind(mime: str) -> str:
    return "document" if mime == "application/pdf" else _FAMILIES.get(mime.partition("/")[0], "other")


def _output(value: Value | None) -> tuple[str, bool]:
    """What a tool gave, as text, and whether it failed. An object of the tool's own shape keeps its bytes."""
    if value is None:
        return "", False
    said = {name: raw for name, raw in _OBJECT.decode(value.object()).items() if raw != _NULL}
    alone = next(iter(said.values())) if len(said) == 1 and not _BARE.isdisjoint(said) else value.raw
    text = bytes(alone).decode()
    return _STRING.decode(text) if text.startswith('"') else text, "error" in said


_STANDARD: Final = str.maketrans("-_", "+/")
_OBJECT: Final = Decoder(Members)
_STRING: Final = Decoder(str)
_NULL: Final = Raw(b"null")
_FAMILIES: Final = {"image": "image", "audio": "audio", "video": "video", "text": "document"}
_MAKERS: Final[dict[str, Callable[[ir.Source, str, str], ir.Image | ir.Document | ir.Audio]]] = {
    "image": lambda source, _, at: ir.Image(source, at=at),
    "document": lambda source, name, at: ir.Document(source, name or None, at),
    "audio": lambda source, _, at: ir.Audio(source, at),
}
_DATA: Final = _GOOGLE_RAN | {"text", "functionCall", "functionResponse", "inlineData", "fileData"}
_PART: Final = _DATA | _SIDES | {"thought", "thoughtSignature"}
