"""What a binding is asked to see whether a feature that it declares is there, and what its answers say of that.

A probe is a generator: it yields requests in no surface's words, is sent the answers, and returns its finding. Pure: who sends the requests, and
how, is not known here. No word of an answer gets into a finding.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, structs

from asgi_surface import ir, samples
from asgi_surface.codecs.base import Codec
from asgi_surface.codecs.reading import decode
from asgi_surface.errors import Code
from asgi_surface.soundness import whole
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Feature, Operation, Surface

T = TypeVar("T")


class Verdict(enum.StrEnum):
    """What came out."""

    HOLDS = "holds"
    FALSE = "does not hold"
    OPEN = "cannot be told"


class Finding(Struct, frozen=True):
    """A verdict, and why it is no other, in constant words."""

    verdict: Verdict
    why: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.why}" if self.why else str(self.verdict)


class Refused(Exception):
    """A request that got no answer: the gateway's code, and the upstream's status where there was one."""

    def __init__(self, code: Code, status: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.status = status

    @property
    def finding(self) -> Finding:
        """What no answer says of a feature. What may be otherwise in a minute says nothing."""
        verdict = Verdict.OPEN if self.code in _PASSING else Verdict.FALSE
        return Finding(verdict, f"{self.code}" + ("" if self.status is None else f", upstream status {self.status}"))


class Ask(Struct, frozen=True, kw_only=True):
    """One request. `more` holds members that only the binding's surface can say, by surface. A count of tokens is asked of the same words."""

    request: ir.Request
    operation: Operation = Operation.GENERATE
    more: Mapping[Surface, Mapping[str, object]] = {}


class Answer(Struct, frozen=True):
    """A whole answer in the binding's surface. `streamed` says whether the upstream sent a stream."""

    codec: Codec
    body: bytes
    streamed: bool

    def response(self) -> ir.Response:
        """The answer as the codec reads it. Raises `Refused`."""
        return self._read(self.codec.read)

    def document(self) -> dict[str, Any]:
        """The answer's members. Raises `Refused`."""
        return self._read(lambda body: decode(_DOCUMENT, body))

    def _read(self, reader: Callable[[bytes], T]) -> T:
        try:
            return reader(self.body)
        except ValueError:
            raise Refused(Code.UPSTREAM_BAD_RESPONSE, 200) from None


Probe = Generator[Ask, Answer, Finding]

_DOCUMENT: Final = msgspec.json.Decoder(dict[str, Any])
_PASSING: Final = frozenset(
    {
        Code.UPSTREAM_UNREACHABLE,
        Code.UPSTREAM_TIMEOUT,
        Code.UPSTREAM_AUTH_FAILED,
        Code.UPSTREAM_RATE_LIMITED,
        Code.UPSTREAM_OVERLOADED,
        Code.OVERLOADED,
        Code.NOT_CONFIGURED,
    }
)
_HOLDS: Final = Finding(Verdict.HOLDS)
_TOKENS: Final = Raw(b"128")
_MORE: Final = Raw(b"1024")  # room for a model that always thinks before it answers
_MOST: Final = Raw(b"4096")  # and for one that was asked to


def _false(why: str) -> Finding:
    return Finding(Verdict.FALSE, why)


def _open(why: str) -> Finding:
    return Finding(Verdict.OPEN, why)


def _said(*parts: str | ir.Part, max_tokens: Raw = _TOKENS, **wishes: Any) -> ir.Request:
    """A request of one turn."""
    settings = ir.Settings(max_tokens=max_tokens, **wishes.pop("settings", {}))
    turn = ir.Turn(ir.Role.USER, tuple(ir.Text(part) if isinstance(part, str) else part for part in parts))
    return ir.Request(turns=(turn,), settings=settings, **wishes)


_HELLO: Final = _said("Say hello.")


def _told(answer: Answer) -> Finding:
    response = answer.response()
    return _HOLDS if response.parts or response.stop is ir.Stop.LENGTH else _false("an empty answer")


def text(_cue: str = "") -> Probe:
    """Whether there is an answer at all; without it nothing else is worth asking."""
    return _told((yield Ask(request=_HELLO)))


def _streaming(_cue: str) -> Probe:
    answer = yield Ask(request=structs.replace(_HELLO, stream=True, include_usage=True))
    return _HOLDS if answer.streamed else _false("the upstream does not stream")


def _missing(response: ir.Response, why: str) -> Finding:
    """What it says that something did not come: nothing where the model was cut off before it said anything else (JSON is what it was to say)."""
    cut = response.stop is ir.Stop.LENGTH and _words(response)[:1] in {"", "{"}
    return _open("the answer was cut off") if cut else _false(why)


def _words(response: ir.Response) -> str:
    return "".join(part.text for part in response.parts if isinstance(part, ir.Text)).strip()


_SCHEMA: Final = Raw(b'{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}')
_TIME: Final = ir.Tool("get_time", "The time in a city", _SCHEMA)
_WEATHER: Final = ir.Tool("get_weather", "The weather in a city", _SCHEMA)
_AUTO: Final = ir.Choice(ir.Pick.AUTO)


def _calls(response: ir.Response, form: ir.Form = ir.Form.FUNCTION) -> list[ir.Call]:
    return [part for part in response.parts if isinstance(part, ir.Call) and part.form is form]


def _forced(request: ir.Request) -> Generator[Ask, Answer, ir.Response]:
    """The answer to a request that forces a call; where that is refused, as models that always think do, to one that leaves it to the model."""
    try:
        return (yield Ask(request=request)).response()
    except Refused as refused:
        if refused.finding.verdict is Verdict.OPEN:
            raise
        return (yield Ask(request=structs.replace(request, choice=_AUTO))).response()


def _tools(cue: str) -> Probe:
    choice = ir.Choice(ir.Pick.REQUIRED, (_TIME.name,))
    response = yield from _forced(_said(cue + "What time is it in Paris? Use the tool.", tools=(_TIME,), choice=choice, max_tokens=_MORE))
    calls = _calls(response)
    if not calls:
        return _missing(response, "no call came")
    return _HOLDS if all(call.name == _TIME.name and whole(call) for call in calls) else _missing(response, "the call cannot be read")


def _parallel(cue: str) -> Probe:
    asked = cue + "What are the time and the weather in Paris? Call both tools at once."
    request = _said(asked, tools=(_TIME, _WEATHER), choice=ir.Choice(ir.Pick.REQUIRED), max_tokens=_MORE, settings={"parallel": True})
    response = yield from _forced(request)
    calls = len(_calls(response))
    if calls > 1:
        return _HOLDS
    return _open("the model made one call only") if calls else _missing(response, "no call came")


def _custom(_cue: str) -> Probe:
    tool = ir.Tool("run_shell", "Runs a command", form=ir.Form.CUSTOM)
    request = _said("List the files here with the tool.", tools=(tool,), choice=ir.Choice(ir.Pick.REQUIRED, (tool.name,)), max_tokens=_MORE)
    response = yield from _forced(request)
    return _HOLDS if _calls(response, ir.Form.CUSTOM) else _missing(response, "no custom call came")


# All reasoning models take this effort; some no lower one.
_THINKING: Final = ir.Effort("high")
_PUZZLE: Final = "How many of the numbers from 1 to 60 are divisible by 3 or by 7, but not by both?"


def _reasoning(cue: str) -> Probe:
    response = (yield Ask(request=_said(cue + _PUZZLE, effort=_THINKING, max_tokens=_MOST))).response()
    thought = any(isinstance(part, ir.Reasoning) for part in response.parts) or bool(response.usage and response.usage.reasoning)
    return _HOLDS if thought else _false("no reasoning in answer or usage")


def _sealed(_cue: str) -> Probe:
    response = (yield Ask(request=_said(_PUZZLE, effort=_THINKING, max_tokens=_MOST, wants_seals=True))).response()
    seals = [part.seal for part in response.parts if isinstance(part, ir.Reasoning | ir.Call) and part.seal]
    return _HOLDS if seals else _missing(response, "no sealed reasoning came")


_FORM: Final = Raw(
    b'{"type":"object","properties":{"answer":{"type":"string","enum":["yes","no"]}},"required":["answer"],"additionalProperties":false}'
)


def _structured(_cue: str) -> Probe:
    # The words do not ask for JSON: only a schema that is enforced brings it.
    request = _said("Is water wet?", format=ir.Format(_FORM, name="answer", strict=True), max_tokens=_MORE)
    response = (yield Ask(request=request)).response()
    try:
        found = msgspec.json.decode(_words(response))
    except (msgspec.DecodeError, RecursionError):
        return _missing(response, "the answer is no JSON")
    return _HOLDS if found in ({"answer": "yes"}, {"answer": "no"}) else _false("the answer does not match the schema")


def _media(part: ir.Part, question: str, word: str) -> Probe:
    """Whether a file is read: the answer tells what only the file does, or the file was counted as input."""
    seen = (yield Ask(request=_said(part, question))).response()
    if word and any(word in one.text.lower() for one in seen.parts if isinstance(one, ir.Text)):
        return _HOLDS
    bare = (yield Ask(request=_said(question))).response()
    counts = [usage.input for usage in (bare.usage, seen.usage) if usage and usage.input is not None]
    if len(counts) < 2:
        return _open("neither answer nor usage shows that it was read")
    return _HOLDS if counts[1] > counts[0] else _false("it was not counted as input, nor does the answer show that it was read")


def _images(_cue: str) -> Probe:
    picture = ir.Image(ir.Inline("image/png", samples.png()))
    return (yield from _media(picture, "Which colour is the picture? Answer with one word.", samples.COLOUR))


def _files(_cue: str) -> Probe:
    page = ir.Document(ir.Inline("application/pdf", samples.pdf()), "probe.pdf")
    return (yield from _media(page, "Which word stands in the file? Answer with that word.", samples.WORD))


def _audio(_cue: str) -> Probe:
    return (yield from _media(ir.Audio(ir.Inline("audio/wav", samples.wav())), "Is this silence? Answer with one word.", ""))


def _logprobs(_cue: str) -> Probe:
    response = (yield Ask(request=structs.replace(_HELLO, settings=ir.Settings(max_tokens=_TOKENS, logprobs=True)))).response()
    return _HOLDS if response.logprobs else _missing(response, "no log probabilities came")


def _choices(_cue: str) -> Probe:
    response = (yield Ask(request=structs.replace(_HELLO, settings=ir.Settings(max_tokens=_TOKENS, n=Raw(b"2"))))).response()
    return _HOLDS if len(response.answers) == 2 else _false("two answers were asked for, and came not")


_COUNTS: Final = ("input_tokens", "totalTokens")


def _counted(_cue: str) -> Probe:
    said = (yield Ask(request=_HELLO, operation=Operation.COUNT_TOKENS)).document()
    return _HOLDS if any(type(said.get(name)) is int and said[name] > 0 for name in _COUNTS) else _false("no count came")


def _late_system(_cue: str) -> Probe:
    words = ((ir.Role.USER, "Say one."), (ir.Role.ASSISTANT, "One."), (ir.Role.SYSTEM, "Write in capital letters."), (ir.Role.USER, "Say two."))
    turns = tuple(ir.Turn(role, (ir.Text(said),)) for role, said in words)
    return _told((yield Ask(request=structs.replace(_HELLO, turns=turns))))


_SEARCH: Final[Mapping[Surface, Mapping[str, object]]] = {
    CHAT: {"web_search_options": {}},
    RESPONSES: {"tools": [{"type": "web_search"}]},
    MESSAGES: {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}]},
    GEMINI: {"tools": [{"googleSearch": {}}]},
}
_SEARCHED: Final = (b'"web_search_call"', b'"web_search_tool_result"', b'"groundingMetadata"', b'"url_citation"')


def _hosted(_cue: str) -> Probe:
    answer = yield Ask(request=_said("Search the web: which day is it today?", max_tokens=_MORE), more=_SEARCH)
    return _HOLDS if any(trace in answer.body for trace in _SEARCHED) else _open("the model did not search")


def _stored(_cue: str) -> Probe:
    first = (yield Ask(request=_HELLO, more={RESPONSES: {"store": True}})).document()
    if not isinstance(first.get("id"), str):
        return _false("an answer without an id")
    return _told((yield Ask(request=_said("And again."), more={RESPONSES: {"previous_response_id": first["id"], "store": False}})))


def _background(_cue: str) -> Probe:
    said = (yield Ask(request=_HELLO, more={RESPONSES: {"background": True, "store": True}})).document()
    return _HOLDS if said.get("background") is True else _false("the answer was not made in the background")


def _cached(_cue: str) -> Probe:
    """A cache shows itself in long prompts only; that is no small request, so none is sent."""
    yield from ()
    return _open("only long prompts are cached")


PROBES: Final[Mapping[Feature, Callable[[str], Probe]]] = {
    Feature.STREAMING: _streaming,
    Feature.TOOLS: _tools,
    Feature.PARALLEL_TOOLS: _parallel,
    Feature.REASONING: _reasoning,
    Feature.ENCRYPTED_REASONING: _sealed,
    Feature.IMAGES: _images,
    Feature.FILES: _files,
    Feature.AUDIO: _audio,
    Feature.STRUCTURED_OUTPUT: _structured,
    Feature.HOSTED_TOOLS: _hosted,
    Feature.CUSTOM_TOOLS: _custom,
    Feature.PROMPT_CACHE: _cached,
    Feature.STORED_RESPONSES: _stored,
    Feature.BACKGROUND: _background,
    Feature.LOGPROBS: _logprobs,
    Feature.MULTIPLE_CHOICES: _choices,
    Feature.MID_CONVERSATION_SYSTEM: _late_system,
    Feature.COUNT_TOKENS: _counted,
}
"""A probe of each feature, by the words that make a server do it which does only what it is told ("" for every real model)."""

CUES: Final[Mapping[Feature, str]] = {
    Feature.PARALLEL_TOOLS: '[tool get_time {"city": "Paris"}] [tool get_weather {"city": "Paris"}] ',
    Feature.REASONING: "[reason by threes, then by sevens] ",
}
"""Those words, for `echo`."""
