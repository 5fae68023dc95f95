"""Generators of requests and answers that a surface, and every other surface asked for, can say exactly: what may be drawn is read off the tables.

Each feature names the construct that it is on each surface. It is drawn for a client when the client's table calls that construct exact on all the
others, so a law that fails is a codec's fault or the table's.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st
from msgspec import Raw, Struct, structs

from asgi_surface import ir, seals
from asgi_surface.assembly import Fold, unfold
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Context, Dialect, Target
from asgi_surface.errors import Code, UpstreamError
from asgi_surface.framing import Framing
from asgi_surface.ir import Form, Pick, Role, SealKind, Stop
from asgi_surface.surfaces import CARRIES, CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.translation import Translation
from asgi_surface.verdicts import Verdict

DOMAIN = "up"
SCHEMA = Raw(b'{"type":"object","properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false}')
GRAMMAR = Raw(b'{"type":"grammar","syntax":"lark","definition":"start: \\"a\\""}')
CONFIG = "field:generationConfig."


def on(chat=None, responses=None, messages=None, gemini=None):
    said = {CHAT: chat, RESPONSES: responses, MESSAGES: messages, GEMINI: gemini}
    return {surface: construct for surface, construct in said.items() if construct}


def openai(construct):
    return on(construct, construct)


# What stands in a request any number of times, or not at all.
FEATURES = {
    "system": on("role:system", "field:instructions", "field:system", "field:systemInstruction"),
    "system.later": on("role:system.mid", "role:system.mid", "role:system"),
    "image.base64": on("part:image_url.base64", "part:input_image.image_url", "block:image.base64", "part:inlineData.image"),
    "image.url": on("part:image_url.url", "part:input_image.image_url", "block:image.url", "part:fileData.image"),
    "image.detail": on("part:image_url.detail", "part:input_image.detail"),
    "document.base64": on("part:file.file_data", "part:input_file.file_data", "block:document.base64", "part:inlineData.document"),
    "document.text": on("part:file.file_data", "part:input_file.file_data", "block:document.text", "part:inlineData.document"),
    "document.url": on(None, "part:input_file.file_url", "block:document.url", "part:fileData.document"),
    "document.name": on("part:file.filename", "part:input_file.filename", "block:document.title"),
    "document.stored": on("part:file.file_id", "part:input_file.file_id"),
    "audio": on("part:input_audio", "part:input_audio", None, "part:inlineData.audio"),
    "call": on("part:tool_calls.function", "item:function_call", "block:tool_use", "part:functionCall"),
    "result.image": on(None, "part:input_image", "block:tool_result.image", "part:functionResponse.parts"),
    "result.document": on(None, "part:input_file", "block:tool_result.document", "part:functionResponse.parts"),
    "result.failed": on(None, None, "block:tool_result.is_error", "part:functionResponse.error"),
    "refusal": openai("part:refusal"),
    "custom": on("tool:custom", "tool:custom"),
    "custom.grammar": on("tool:custom.grammar", "tool:custom.format.grammar"),
    "namespace": on(None, "tool:namespace"),
    "strict": on("tool:function.strict", "tool:function.strict", "tool:custom.strict"),
    "seal.call": on("seal:thought", None, None, "part:thoughtSignature"),
    "seal.encrypted": on(None, "item:reasoning.encrypted_content"),
    "seal.signature": on(None, None, "seal:signature"),
    "seal.redacted": on(None, None, "seal:redacted"),
    "seal.thought": on(None, None, None, "part:thoughtSignature"),
    "summary": on(None, "field:reasoning.summary", "field:thinking.display", f"{CONFIG}thinkingConfig.includeThoughts"),
    "format.description": on("field:response_format.json_schema.description", "field:text.format.json_schema.description"),
    "max_tokens": on("field:max_completion_tokens", "field:max_output_tokens", "field:max_tokens", f"{CONFIG}maxOutputTokens"),
    "temperature": on("field:temperature", "field:temperature", "field:temperature", f"{CONFIG}temperature"),
    "top_p": on("field:top_p", "field:top_p", "field:top_p", f"{CONFIG}topP"),
    "top_k": on("field:top_k", None, "field:top_k", f"{CONFIG}topK"),
    "seed": on("field:seed", None, None, f"{CONFIG}seed"),
    "frequency_penalty": on("field:frequency_penalty", None, None, f"{CONFIG}frequencyPenalty"),
    "presence_penalty": on("field:presence_penalty", None, None, f"{CONFIG}presencePenalty"),
    "stop": on("field:stop", None, "field:stop_sequences", f"{CONFIG}stopSequences"),
    "n": on("field:n", None, None, f"{CONFIG}candidateCount"),
    "logprobs": on("field:logprobs", "field:include.message.output_text.logprobs", None, f"{CONFIG}responseLogprobs"),
    "top_logprobs": on("field:top_logprobs", "field:top_logprobs", None, f"{CONFIG}logprobs"),
    "metadata": openai("field:metadata"),
    "cache_key": openai("field:prompt_cache_key"),
    "user": openai("field:user"),
}  # fmt: skip

# Of each of these a request has at most one.
GROUPS = {
    "choice": {
        "auto": on("choice:auto", "choice:auto", "choice:auto", "choice:AUTO"),
        "none": on("choice:none", "choice:none", "choice:none", "choice:NONE"),
        "required": on("choice:required", "choice:required", "choice:any", "choice:ANY"),
        "function": on("choice:function", "choice:function", "choice:tool", "choice:allowedFunctionNames.one"),
        "custom": openai("choice:custom"),
        "allowed": on("choice:allowed_tools", "choice:allowed_tools", None, "choice:allowedFunctionNames"),
    },
    "effort": {
        **dict.fromkeys(
            ("low", "medium", "high", "xhigh"),
            on("field:reasoning_effort", "field:reasoning.effort", "field:output_config.effort", f"{CONFIG}thinkingConfig.thinkingLevel"),
        ),
        "minimal": on("field:reasoning_effort", "field:reasoning.effort", None, f"{CONFIG}thinkingConfig.thinkingLevel"),
        "max": on("field:reasoning_effort", "field:reasoning.effort", "field:output_config.effort"),
        "off": on("field:reasoning_effort", "field:reasoning.effort", "field:thinking.disabled", f"{CONFIG}thinkingConfig.thinkingBudget.off"),
        "adaptive": on(None, None, "field:thinking.adaptive", f"{CONFIG}thinkingConfig.thinkingBudget.adaptive"),
        "budget": on(None, None, "field:thinking.enabled", f"{CONFIG}thinkingConfig.thinkingBudget"),
    },
    "format": {
        "object": on("field:response_format.json_object", "field:text.format.json_object", None, f"{CONFIG}responseMimeType"),
        "schema": on(
            "field:response_format.json_schema", "field:text.format.json_schema", "field:output_config.format", f"{CONFIG}responseJsonSchema"
        ),
    },
    "parallel": {
        "false": on("field:parallel_tool_calls.false", "field:parallel_tool_calls.false", "field:tool_choice.disable_parallel_tool_use"),
        "true": on("field:parallel_tool_calls", "field:parallel_tool_calls", "field:tool_choice.disable_parallel_tool_use.false"),
    },
    "service_tier": {
        "auto": on("field:service_tier.auto", "field:service_tier.auto", "field:service_tier.auto"),
        "default": on("field:service_tier.default", "field:service_tier.default", "field:service_tier.standard_only", "field:serviceTier.standard"),
        "flex": on("field:service_tier.flex", "field:service_tier.flex", None, "field:serviceTier"),
        "priority": on("field:service_tier.priority", "field:service_tier.priority", None, "field:serviceTier"),
        "scale": on("field:service_tier", "field:service_tier"),
    },
    "store": {"false": on("field:store.false", "field:store.false", None, "field:store.false"), "true": on("field:store", None, None, "field:store")},
    "verbosity": {"low": openai("field:verbosity") | {RESPONSES: "field:text.verbosity"}, "medium": on("field:verbosity.medium")},
    "padding": dict.fromkeys(("true", "false"), openai("field:stream_options.include_obfuscation")),
    "safety": {"id": on("field:safety_identifier", "field:safety_identifier", "field:metadata.user_id")},
}  # fmt: skip

ANSWERS = {
    "text": on("answer:content", "answer:output_text", "answer:text", "answer:text"),
    "citations": on("answer:url_citation", "answer:url_citation", None, "answer:groundingMetadata"),
    "refusal": openai("answer:refusal"),
    "reasoning": on("answer:reasoning_content", "answer:reasoning", "answer:thinking", "answer:thought"),
    "call": on("answer:tool_calls.function", "answer:function_call", "answer:tool_use", "answer:functionCall"),
    "custom": on("answer:tool_calls.custom", "answer:custom_tool_call"),
    "namespace": on(None, "answer:function_call.namespace"),
    "seal.call": on(None, None, None, "answer:thoughtSignature"),
    "logprobs": on("answer:logprobs", "answer:output_text.logprobs", None, "answer:logprobsResult"),
    "choices": on("answer:choices", None, None, "answer:candidates"),
    "created": on("answer:created", "answer:created_at"),
    "tier": on("answer:service_tier", "answer:service_tier", "usage:service_tier"),
    "usage": on("usage:prompt_tokens", "usage:input_tokens", "usage:output_tokens", "usage:promptTokenCount"),
    "usage.cached": on(
        "usage:prompt_tokens_details.cached_tokens",
        "usage:input_tokens_details.cached_tokens",
        "usage:cache_read_input_tokens",
        "usage:cachedContentTokenCount",
    ),
    "usage.cache_write": on(
        "usage:prompt_tokens_details.cache_write_tokens", "usage:input_tokens_details.cache_write_tokens", "usage:cache_creation_input_tokens"
    ),
    "usage.reasoning": on(
        "usage:completion_tokens_details.reasoning_tokens",
        "usage:output_tokens_details.reasoning_tokens",
        "usage:output_tokens_details.thinking_tokens",
        "usage:thoughtsTokenCount",
    ),
    "usage.audio_input": on("usage:prompt_tokens_details.audio_tokens", None, None, "usage:promptTokensDetails.AUDIO"),
    "usage.audio_output": on("usage:completion_tokens_details.audio_tokens", None, None, "usage:candidatesTokensDetails.AUDIO"),
}
STOPS = {
    Stop.END: on("stop:stop", "stop:completed", "stop:end_turn", "stop:STOP"),
    Stop.LENGTH: on("stop:length", "stop:max_output_tokens", "stop:max_tokens", "stop:MAX_TOKENS"),
    Stop.FILTER: on("stop:content_filter", "stop:content_filter", None, "stop:SAFETY"),
    Stop.REFUSAL: on(None, None, "stop:refusal"),
    Stop.PAUSE: on(None, None, "stop:pause_turn"),
    Stop.STOP_SEQUENCE: on(None, None, "stop:stop_sequence"),
    Stop.OTHER: on(None, None, None, "stop:OTHER"),
}

# Exact by the table, but by their values not for all surfaces; what cannot be said is refused at its pointer or noted as emulated, and tested there.
ONLY_AMONG = {
    # Gemini wants the media type of what is elsewhere, which the others do not say on the way back.
    "image.url": {CHAT, RESPONSES, MESSAGES},
    "document.url": {RESPONSES, MESSAGES},
    # A tool message holds text only; Responses has one row for images wherever they stand.
    "result.image": {RESPONSES, MESSAGES, GEMINI},
    "result.document": {RESPONSES, MESSAGES, GEMINI},
    # Whoever minted a token gets it back exactly, and nobody else.
    "seal.call": {CHAT, GEMINI},
    "seal.thought": {GEMINI},
    # The least effort on Messages is low, the greatest on Gemini xhigh.
    "minimal": {CHAT, RESPONSES, GEMINI},
    "max": {CHAT, RESPONSES, MESSAGES},
}


def sayable(table, client, others):
    """The features of a table that the client can say, and that are exact on all the others."""
    return [name for name, where in table.items() if client in where and _exact(name, where[client], client, others)]


def _exact(name, construct, client, others):
    verdicts = CODECS[client].rows[construct].verdicts
    among = not others or {client, *others} <= ONLY_AMONG.get(name, {client, *others})
    return among and all(verdicts[other] is Verdict.EXACT for other in others)


def _some(draw, names):
    """Any of the names, each as likely in as out."""
    coins = draw(st.binary(min_size=len(names), max_size=len(names)))
    return {name for name, coin in zip(names, coins, strict=True) if coin & 1}


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
NUMBERS = st.sampled_from([b"1", b"0.25", b"0.5", b"1.0", b"0.30000000000000004"]).map(Raw)
WHOLE = st.integers(1, 40).map(lambda number: Raw(str(number).encode()))
ARGUMENTS = st.sampled_from(["{}", '{"x": 1.0}', '{"x":19876543210987654321,"y":"\\u00e9"}', '{ "x" : [ 1e2, null ] }'])
PNG, PDF, WAV = (ir.Inline(media, "QUJD") for media in ("image/png", "application/pdf", "audio/wav"))
IMAGES = {"image.base64": ir.Image(PNG), "image.url": ir.Image(ir.Link("https://a.example/b.png", "image/png"))}
DOCUMENTS = {
    "document.base64": PDF,
    "document.text": ir.Inline("text/plain", "QUJD"),
    "document.url": ir.Link("https://a.example/b.pdf", "application/pdf"),
    "document.stored": ir.Stored("file-1"),
}
SEALED = {
    "seal.encrypted": ir.Reasoning("why", ir.Seal("E==", SealKind.ENCRYPTED, RESPONSES, DOMAIN, "rs_1")),
    "seal.signature": ir.Reasoning("why", ir.Seal("S==", SealKind.SIGNATURE, MESSAGES, DOMAIN)),
    "seal.redacted": ir.Reasoning("", ir.Seal("R==", SealKind.REDACTED, MESSAGES, DOMAIN)),
    "seal.thought": ir.Reasoning("why", ir.Seal("T==", SealKind.THOUGHT, GEMINI, DOMAIN)),
}
OWN = ir.Seal("G==", SealKind.THOUGHT, GEMINI, DOMAIN)
PICKS = {"auto": Pick.AUTO, "none": Pick.NONE, "required": Pick.REQUIRED}
CHOSEN = {"function": (Pick.REQUIRED, "f"), "custom": (Pick.REQUIRED, "p"), "allowed": (Pick.AUTO, "f", "g")}
MUST = {"required", "function", "custom"}
NUMERIC = {"temperature", "top_p", "frequency_penalty", "presence_penalty"}
INTEGERS = {"top_k", "seed", "n", "top_logprobs"}


class Drawn:
    """The features of one request, and the texts and numbers in it."""

    def __init__(self, draw: st.DrawFn, client: str, others: tuple[str, ...]) -> None:
        self._draw = draw
        self.all = {client, *others}
        self.has = _some(draw, sayable(FEATURES, client, others))
        self.of = {name: draw(st.sampled_from([None, *sayable(group, client, others)])) for name, group in GROUPS.items()}
        self.words = st.sampled_from(draw(st.lists(WORDS, min_size=3, max_size=3)))

    def text(self):
        return ir.Text(self._draw(self.words))

    def request(self, *, stream):
        tools = tuple(self._tools())
        return ir.Request(
            turns=tuple(turn for turn in self._turns() if turn.parts),
            tools=tools,
            choice=self._choice(),
            settings=self._settings(stream=stream),
            effort=self._effort(),
            format=self._format(),
            stream=stream,
        )

    def _turns(self):
        yield ir.Turn(Role.SYSTEM, (self.text(),) if "system" in self.has else ())
        yield ir.Turn(Role.USER, (self.text(), *self._media()))
        yield ir.Turn(Role.USER, (self.text(), self.text()))
        # Messages takes it only here: behind a user's turn and before the model's.
        yield ir.Turn(Role.SYSTEM, (self.text(),) if "system.later" in self.has else ())
        calls = self._calls()
        refusal = (ir.Refusal(self._draw(self.words)),) if "refusal" in self.has else ()
        yield ir.Turn(Role.ASSISTANT, (*(part for name, part in SEALED.items() if name in self.has), self.text(), *refusal, *calls))
        yield ir.Turn(Role.USER, (*map(self._result, calls), self.text()))

    def _media(self):
        detail = "high" if "image.detail" in self.has else None
        name = "a.pdf" if self._named() else None
        images = (structs.replace(image, detail=detail) for feature, image in IMAGES.items() if feature in self.has)
        documents = (ir.Document(source, None if isinstance(source, ir.Stored) else name) for at, source in DOCUMENTS.items() if at in self.has)
        return (*images, *documents, *((ir.Audio(WAV),) if "audio" in self.has else ()))

    def _named(self):
        # Data has a name on OpenAI's surfaces, whether it is said or not.
        return "document.name" in self.has or not self.all.isdisjoint({CHAT, RESPONSES})

    def _calls(self):
        seal = OWN if "seal.call" in self.has else None
        calls = [ir.Call("c1", "f", self._draw(ARGUMENTS), seal=seal), ir.Call("c2", "g", "{}")] if "call" in self.has else []
        calls += [ir.Call("c3", "p", self._draw(self.words), Form.CUSTOM)] if "custom" in self.has else []
        return [*calls, *([ir.Call("c4", "h", "{}", namespace="n")] if "namespace" in self.has else [])]

    def _result(self, call):
        image = (ir.Image(PNG),) if "result.image" in self.has else ()
        document = (ir.Document(PDF, "a.pdf" if self._named() else None),) if "result.document" in self.has else ()
        return ir.Result(call.id, (self.text(), *image, *document), failed="result.failed" in self.has, form=call.form)

    def _tools(self):
        yield ir.Tool("f", "d", SCHEMA, strict="strict" in self.has)
        yield ir.Tool("g", None, SCHEMA)
        if "custom" in self.has or self.of["choice"] == "custom":
            yield ir.Tool("p", "d", form=Form.CUSTOM, grammar=GRAMMAR if "custom.grammar" in self.has else None)
        if "namespace" in self.has:
            yield ir.Tool("h", "d", SCHEMA, namespace="n", namespace_description="all")

    def _choice(self):
        kind = self.of["choice"]
        if kind in CHOSEN:
            pick, *names = CHOSEN[kind]
            return ir.Choice(pick, tuple(names))
        return None if kind is None else ir.Choice(PICKS[kind])

    def _settings(self, *, stream):
        said: dict[str, Any] = {name: self._draw(NUMBERS) for name in NUMERIC & self.has} | {name: self._draw(WHOLE) for name in INTEGERS & self.has}
        said |= {name: self._draw(self.words) for name in ("cache_key", "user") if name in self.has}
        # The surface demands a limit, above what is to be thought.
        limited = "max_tokens" in self.has or MESSAGES in self.all
        told = {
            "max_tokens": Raw(b"4096") if limited else None,
            "n": Raw(b"2") if "n" in said else None,
            "stop": (self._draw(self.words), "END") if "stop" in self.has else None,
            "logprobs": True if {"logprobs", "top_logprobs"} & self.has else None,
            "metadata": Raw(b'{"a": "\\u00e9"}') if "metadata" in self.has else None,
            "parallel": _flag(self.of["parallel"] if self.of["choice"] != "none" else None),
            "store": _flag(self.of["store"]),
            "service_tier": self.of["service_tier"],
            "verbosity": self.of["verbosity"],
            "obfuscation": _flag(self.of["padding"] if stream else None),
            "safety_id": "u-1" if self.of["safety"] and "user" not in said else None,
        }
        return ir.Settings(**(said | told))

    def _effort(self):
        kind = self.of["effort"]
        # Messages takes no budget beside a tool that must be called, or in a loop that began without a thought.
        if kind == "budget" and MESSAGES in self.all and ({"call", "custom", "namespace"} & self.has or self.of["choice"] in MUST):
            kind = None
        summary = "auto" if "summary" in self.has and kind != "off" else None
        words = {"off": {"off": True}, "adaptive": {"adaptive": True}, "budget": {"budget": 2048}}
        # Messages shows what is thought within a budget unless told otherwise.
        shown = "auto" if kind == "budget" and MESSAGES in self.all else summary
        if kind is None:
            return None if summary is None or MESSAGES in self.all else ir.Effort(summary=summary)
        return ir.Effort(**words.get(kind, {"word": kind}), summary=shown)

    def _format(self):
        kind = self.of["format"]
        if kind is None:
            return None
        about = "d" if "format.description" in self.has else None
        return ir.Format(SCHEMA, "answer", about, strict=True) if kind == "schema" else ir.Format(None)


def _flag(word):
    return None if word is None else word == "true"


@pytest.fixture(scope="session")
def requests():
    """Strategy of requests that `client` can say, all of it exact on `others`."""

    @st.composite
    def strategy(draw, client, others=()):
        return Drawn(draw, client, tuple(others)).request(stream=draw(st.booleans()))

    return strategy


NOW = 1_600_000_000  # the gateway's own time, where the answer has none
TOKENS = Raw(b'[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"b","logprob":-1.25,"bytes":[98]}]}]')


@pytest.fixture(scope="session")
def answers():
    """Strategy of answers that `upstream` can say, all of it exact for clients of `others`."""

    @st.composite
    def strategy(draw, upstream, others=()):
        has = _some(draw, sayable(ANSWERS, upstream, others))
        stops = sayable(STOPS, upstream, others)
        return ir.Response(
            id="r-1",
            model="up-model",
            created=1_700_000_000 if "created" in has else None,
            usage=_usage(has),
            service_tier="default" if "tier" in has else None,
            more=tuple(ir.Alternative(**_answer(has, stops, draw)) for _ in range(2 if "choices" in has else 0)),
            **_answer(has, stops, draw),
        )

    return strategy


def _answer(has, stops, draw):
    """One of the answers. Where there are several each has words, and may lack else what another has."""
    some = {"text", *_some(draw, sorted(has))} if "choices" in has else has
    parts, stop = tuple(_said(some, draw)), draw(st.sampled_from(stops))
    calls = any(isinstance(part, ir.Call) for part in parts)
    return {
        "parts": parts,
        "stop": Stop.TOOLS if calls and stop in {Stop.END, Stop.STOP_SEQUENCE} else stop,
        "stop_sequence": "END" if stop is Stop.STOP_SEQUENCE else None,
        "logprobs": TOKENS if "logprobs" in some and "text" in some else None,
    }


def _said(has, draw):
    cited = (ir.Citation("https://a.example/", "A", 0, 1),) if "citations" in has else ()
    makers = {
        "reasoning": lambda: ir.Reasoning(draw(WORDS)),
        "text": lambda: ir.Text(draw(WORDS), citations=cited),
        "refusal": lambda: ir.Refusal(draw(WORDS)),
        "call": lambda: ir.Call("c1", "f", draw(ARGUMENTS), seal=OWN if "seal.call" in has else None),
        "custom": lambda: ir.Call("c2", "p", draw(WORDS), Form.CUSTOM),
        "namespace": lambda: ir.Call("c3", "h", "{}", namespace="n"),
    }
    return [make() for name, make in makers.items() if name in has]


COUNTS = {"cached": 5, "cache_write": 3, "reasoning": 4, "audio_input": 2, "audio_output": 1}


def _usage(has):
    return ir.Usage(20, 10, **{name: count for name, count in COUNTS.items() if f"usage.{name}" in has}) if "usage" in has else None


@pytest.fixture(scope="session")
def target():
    """Makes the upstream of a surface that carries everything the surface can."""

    def make(surface, **dialect):
        said = Dialect(**({"remote_images": True} | dialect))
        return Target(model="up-model", dialect=said, seal_domain=DOMAIN, features=CARRIES[surface])

    return make


@pytest.fixture(scope="session")
def retold():
    """Writes an answer for a client and reads it from there, seals out of the envelopes that the client keeps."""

    def hop(response, surface, upstream):
        codec = CODECS[surface]
        body = codec.write(response, _context(surface, upstream))
        return _opened(codec.read(body)), body

    return hop


def _context(surface, upstream, *, stream=False):
    asked = ir.Request(turns=(), wants_seals=True, stream=stream, include_usage=stream)
    return Context(request=asked, aliases={}, seal_domain=DOMAIN, upstream=upstream, model="m", request_id="0", now=NOW, stream=stream)


def _opened(response):
    more = tuple(structs.replace(one, parts=_bare(one.parts)) for one in response.more)
    return structs.replace(response, parts=_bare(response.parts), more=more)


@pytest.fixture(scope="session")
def streamed():
    """Streams an answer to a client, and folds it there; gives it with the stream and the constructs that were not read."""

    def hop(response, surface):
        found = []
        encoder = CODECS[surface].encoder(_context(surface, surface, stream=True))
        body = _translation(surface, encoder, Framing.SSE).say(unfold(response))
        one = _translation(surface, Fold(lambda answer: found.append(answer) or b"whole"), None)
        assert one.feed(body) + one.eof() == b"whole"
        return _opened(found[0]), body, one.unread

    return hop


def _translation(surface, encoder, downstream):
    return Translation(
        CODECS[surface].decoder(),
        encoder,
        upstream=Framing.SSE,
        downstream=downstream,
        event_bytes=1 << 20,
        output_chars=1 << 20,
        eof_ends=CODECS[surface].eof_ends,
        blame=lambda facts: UpstreamError(Code.UPSTREAM_ERROR, facts.message),
    )


@pytest.fixture(scope="session")
def over(target):
    """Says a request on a surface and lifts it from there, seals with their issuer as the envelope would keep it."""

    def hop(request, surface, **dialect):
        codec = CODECS[surface]
        lifted = codec.lift(codec.lower(request, target(surface, **dialect)).members, request.stream)
        return structs.replace(lifted, request=_minted(lifted.request))

    return hop


def _minted(node):
    if isinstance(node, tuple):
        return tuple(map(_minted, node))
    if isinstance(node, ir.Seal):
        return structs.replace(node, domain=DOMAIN)
    if isinstance(node, ir.Request | ir.Turn | ir.Reasoning | ir.Call):
        return structs.replace(node, **{name: _minted(getattr(node, name)) for name in ("turns", "parts", "seal") if hasattr(node, name)})
    return node


# Two spellings of one meaning.


def _bare(node):
    """Without places, and with seals out of their envelopes."""
    if isinstance(node, tuple):
        return tuple(map(_bare, node))
    if isinstance(node, ir.Seal):
        opened = seals.unwrap(node.token) or node
        return None if opened.kind is SealKind.TEXT else structs.replace(opened, domain="", id=opened.id if opened.surface == RESPONSES else "")
    if not isinstance(node, Struct):
        return node
    said = {name: _bare(getattr(node, name)) for name in node.__struct_fields__ if name != "at"}
    return type(node)(**said)


def _merged(turns):
    found = []
    for turn in turns:
        role = Role.SYSTEM if turn.role is Role.DEVELOPER else turn.role
        before = found.pop() if found and found[-1].role is role else ir.Turn(role, ())
        found.append(structs.replace(before, parts=before.parts + turn.parts))
    return tuple(found)


@pytest.fixture(scope="session")
def meaning():
    """A request without its spelling, as far as all the surfaces that it went through tell spellings apart."""

    def of(request, *through):
        request, crossed = _bare(request), len(through) > 1
        named = not (crossed and GEMINI in through)
        turns = tuple(structs.replace(turn, parts=tuple(_part(part, named=named) for part in turn.parts)) for turn in _merged(request.turns))
        return structs.replace(
            request,
            turns=turns,
            choice=None if request.choice == ir.Choice(Pick.AUTO) else request.choice,
            settings=_settled(request.settings, through, sampled=MESSAGES not in through or request.effort is None or request.effort.off),
            effort=_tried(request.effort),
            format=request.format and _formed(request.format, through),
            include_usage=False,
            wants_seals=False,
        )

    return of


def _part(part, *, named):
    if isinstance(part, ir.Result):
        part = structs.replace(part, name=None, parts=tuple(_part(inner, named=named) for inner in part.parts))
    if isinstance(part, ir.Image | ir.Document) and isinstance(part.source, ir.Link):
        part = structs.replace(part, source=ir.Link(part.source.url))  # the media type is told on Gemini only
    return structs.replace(part, name=part.name if named else None) if isinstance(part, ir.Document) else part


def _settled(settings, through, *, sampled):
    silent = {"store": None} if RESPONSES in through and settings.store is False else {}  # Responses stores unless said, so it is always said
    always = {"parallel": None} if GEMINI in through and settings.parallel else {}  # Gemini's calls always may be parallel
    unheard = {} if sampled else {"temperature": None, "top_p": None, "top_k": None}  # Messages takes none beside thinking
    return structs.replace(settings, user=None, safety_id=settings.safety_id or settings.user, **silent, **always, **unheard)


def _tried(effort):
    """A word is said within adaptive thinking on Messages."""
    return effort and structs.replace(effort, adaptive=effort.adaptive and effort.word is None)


def _formed(wanted, through):
    """Messages and Gemini have no label of a schema, and enforce every one."""
    return structs.replace(wanted, name=None, strict=None) if {MESSAGES, GEMINI} & set(through) else wanted


@pytest.fixture(scope="session")
def told():
    """An answer without its spelling, as far as all the surfaces that it went through tell spellings apart."""

    def of(response, *through):
        response = _bare(response)
        usage = response.usage and ir.Usage(*((getattr(response.usage, name) or None) for name in ir.Usage.__struct_fields__))
        return structs.replace(
            response,
            created=response.created if response.created != NOW and set(through) <= {CHAT, RESPONSES} else None,
            usage=None if usage == ir.Usage() else usage,
            service_tier=response.service_tier if GEMINI not in through else None,
            more=tuple(structs.replace(one, **_ended(one, through)) for one in response.more),
            **_ended(response, through),
        )

    return of


def _ended(answer, through):
    return {
        "stop": _stopped(answer.stop, through),
        "stop_sequence": answer.stop_sequence if through == (MESSAGES,) else None,
        "logprobs": answer.logprobs and json.dumps(json.loads(bytes(answer.logprobs)), sort_keys=True),
    }


def _stopped(stop, through):
    return stop if len(through) == 1 else {Stop.REFUSAL: Stop.FILTER, Stop.STOP_SEQUENCE: Stop.END}.get(stop, stop)
