"""The tables of verdicts: how they are read, that equal meanings have equal verdicts, and how a request is judged and pruned by them; and seals."""

from __future__ import annotations

import base64

import pytest
from msgspec import Raw

from asgi_surface import ir, seals
from asgi_surface.codecs import CODECS
from asgi_surface.converters import judge, prune
from asgi_surface.errors import Code, RequestError
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES
from asgi_surface.verdicts import Mention, Row, Verdict, table

ROWS = table("""
# construct  letters  why
field:exact     -eee
field:hint      -aaa  a hint  # of the table's writer
field:emulated  -mme  other words
field:refused   -rrr  nothing like it
""")


def test_a_table_gives_each_construct_its_verdicts_and_why():
    assert list(ROWS) == ["field:exact", "field:hint", "field:emulated", "field:refused"]
    assert ROWS["field:hint"] == Row("field:hint", dict.fromkeys((RESPONSES, MESSAGES, GEMINI), Verdict.ADVISORY), "a hint")
    assert ROWS["field:emulated"].verdicts == {RESPONSES: Verdict.EMULATED, MESSAGES: Verdict.EMULATED, GEMINI: Verdict.EXACT}
    assert ROWS["field:exact"].why == ""


@pytest.mark.parametrize(
    "text", ["field:a -eee\nfield:b -eee\nfield:a -rrr", "field:a -exe", "field:a -ee", "field:a -eeee", "field:a"], ids=str.splitlines
)
def test_a_row_that_cannot_be_read_or_stands_twice_is_an_error(text):
    with pytest.raises(ValueError, match=r"row|argument|unpack"):
        table(text)


# One meaning a line, by the construct of each surface that has one.
MEANINGS = {
    "custom tool": {CHAT: "tool:custom", RESPONSES: "tool:custom"},
    "grammar of a custom tool": {CHAT: "tool:custom.grammar", RESPONSES: "tool:custom.format.grammar"},
    "call of a custom tool": {CHAT: "part:tool_calls.custom", RESPONSES: "item:custom_tool_call"},
    "choice of a custom tool": {CHAT: "choice:custom", RESPONSES: "choice:custom"},
    "strict function": {CHAT: "tool:function.strict", RESPONSES: "tool:function.strict", MESSAGES: "tool:custom.strict"},
    "allowed tools": {CHAT: "choice:allowed_tools", RESPONSES: "choice:allowed_tools"},
    "forced tool": {
        CHAT: "choice:function",
        RESPONSES: "choice:function",
        MESSAGES: "choice:tool",
        GEMINI: "choice:allowedFunctionNames.one",
    },
    "instruction": {CHAT: "role:system", RESPONSES: "role:system", MESSAGES: "field:system", GEMINI: "field:systemInstruction"},
    "later instruction": {CHAT: "role:system.mid", RESPONSES: "role:system.mid", MESSAGES: "role:system"},
    "developer's instruction": {CHAT: "role:developer", RESPONSES: "role:developer"},
    "developer's later instruction": {CHAT: "role:developer.mid", RESPONSES: "role:developer.mid"},
    "tier of choice": {CHAT: "field:service_tier.auto", RESPONSES: "field:service_tier.auto", MESSAGES: "field:service_tier.auto"},
    "standard tier": {
        CHAT: "field:service_tier.default",
        RESPONSES: "field:service_tier.default",
        MESSAGES: "field:service_tier.standard_only",
        GEMINI: "field:serviceTier.standard",
    },
    "other tier": {CHAT: "field:service_tier", RESPONSES: "field:service_tier"},
    "keep the answer": {CHAT: "field:store", RESPONSES: "field:store"},
    "keep no answer": {CHAT: "field:store.false", RESPONSES: "field:store.false", GEMINI: "field:store.false"},
    "end user": {CHAT: "field:user", RESPONSES: "field:user", MESSAGES: "field:metadata.user_id"},
    "end user to be watched": {CHAT: "field:safety_identifier", RESPONSES: "field:safety_identifier", MESSAGES: "field:metadata.user_id"},
    "labels": {CHAT: "field:metadata", RESPONSES: "field:metadata", MESSAGES: "field:metadata", GEMINI: "field:labels"},
    "cache key": {CHAT: "field:prompt_cache_key", RESPONSES: "field:prompt_cache_key"},
    "cache mark": {CHAT: "part:prompt_cache_breakpoint", RESPONSES: "part:input_text.prompt_cache_breakpoint", MESSAGES: "block:text.cache_control"},
    "no parallel calls": {
        CHAT: "field:parallel_tool_calls.false",
        RESPONSES: "field:parallel_tool_calls.false",
        MESSAGES: "field:tool_choice.disable_parallel_tool_use",
    },
    "token limit": {
        CHAT: "field:max_completion_tokens",
        RESPONSES: "field:max_output_tokens",
        MESSAGES: "field:max_tokens",
        GEMINI: "field:generationConfig.maxOutputTokens",
    },
    "stop sequences": {CHAT: "field:stop", MESSAGES: "field:stop_sequences", GEMINI: "field:generationConfig.stopSequences"},
    "top_k": {CHAT: "field:top_k", GEMINI: "field:generationConfig.topK"},
    "several answers": {CHAT: "field:n", GEMINI: "field:generationConfig.candidateCount"},
    "log probabilities": {
        CHAT: "field:logprobs",
        RESPONSES: "field:include.message.output_text.logprobs",
        GEMINI: "field:generationConfig.responseLogprobs",
    },
    "some JSON": {
        CHAT: "field:response_format.json_object",
        RESPONSES: "field:text.format.json_object",
        GEMINI: "field:generationConfig.responseMimeType",
    },
    "JSON by a schema": {
        CHAT: "field:response_format.json_schema",
        RESPONSES: "field:text.format.json_schema",
        MESSAGES: "field:output_config.format",
        GEMINI: "field:generationConfig.responseJsonSchema",
    },
    "effort": {
        CHAT: "field:reasoning_effort",
        RESPONSES: "field:reasoning.effort",
        MESSAGES: "field:output_config.effort",
        GEMINI: "field:generationConfig.thinkingConfig.thinkingLevel",
    },
    "shown reasoning": {
        RESPONSES: "field:reasoning.summary",
        MESSAGES: "field:thinking.display",
        GEMINI: "field:generationConfig.thinkingConfig.includeThoughts",
    },
    "reasoning budget": {
        MESSAGES: "field:thinking.enabled",
        GEMINI: "field:generationConfig.thinkingConfig.thinkingBudget",
    },
    "length of the answer": {CHAT: "field:verbosity", RESPONSES: "field:text.verbosity"},
    "detail of an image": {CHAT: "part:image_url.detail", RESPONSES: "part:input_image.detail"},
    "file at the provider": {CHAT: "part:file.file_id", RESPONSES: "part:input_file.file_id", MESSAGES: "block:document.file"},
    "name of a file": {CHAT: "part:file.filename", RESPONSES: "part:input_file.filename", MESSAGES: "block:document.title"},
    "sound": {CHAT: "part:input_audio", RESPONSES: "part:input_audio", GEMINI: "part:inlineData.audio"},
    "earlier refusal": {CHAT: "part:refusal", RESPONSES: "part:refusal"},
    "failed result": {MESSAGES: "block:tool_result.is_error", GEMINI: "part:functionResponse.error"},
    "result with a picture": {MESSAGES: "block:tool_result.image", GEMINI: "part:functionResponse.parts"},
    "seal of another issuer": dict.fromkeys((CHAT, RESPONSES, MESSAGES, GEMINI), "seal:foreign"),
}
OPENAI = {CHAT, RESPONSES}


@pytest.mark.parametrize("meaning", MEANINGS)
def test_one_meaning_has_one_verdict_toward_a_surface_of_another_vendor(meaning):
    for target in (CHAT, RESPONSES, MESSAGES, GEMINI):
        others = {one: name for one, name in MEANINGS[meaning].items() if one != target and not {one, target} <= OPENAI}
        assert len({CODECS[one].rows[name].verdicts[target] for one, name in others.items()}) <= 1, (target, others)


def mentions(*names):
    return [Mention(f"field:{name}", f"/{name}") for name in names]


def test_hints_are_dropped_and_what_is_said_is_not():
    assert judge(mentions("exact", "hint", "emulated"), ROWS, MESSAGES, ()) == (tuple(mentions("hint")), ())


def test_what_is_refused_is_refused_at_its_place_unless_tolerated():
    with pytest.raises(RequestError) as caught:
        judge(mentions("hint", "refused"), ROWS, GEMINI, {"field:hint"})
    assert (caught.value.code, caught.value.pointer) == (Code.UNREPRESENTABLE, "/refused")
    assert "nothing like it" in caught.value.message
    assert judge(mentions("hint", "refused"), ROWS, GEMINI, {"field:refused"}) == (tuple(mentions("hint")), tuple(mentions("refused")))


REQUEST = ir.Request(
    turns=(
        ir.Turn(ir.Role.USER, (ir.Text("a", "/t/0/0"), ir.Text("b", "/t/0/1")), "/t/0"),
        ir.Turn(ir.Role.USER, (ir.Result("c", (ir.Text("x", "/t/1/0/0"), ir.Text("y", "/t/1/0/1")), at="/t/1/0"),), "/t/1"),
        ir.Turn(ir.Role.USER, (ir.Text("z", "/t/2/0"),), "/t/2"),
    ),
    tools=(ir.Tool("f", at="/tools/0"), ir.Tool("g", at="/tools/1")),
    choice=ir.Choice(ir.Pick.AUTO, at="/choice"),
    effort=ir.Effort("low", at="/effort"),
    format=ir.Format(None, at="/format"),
    settings=ir.Settings(seed=Raw(b"1"), user="u", at={"seed": "/seed", "user": "/user"}),
)


def words(request):
    return [[part.text if isinstance(part, ir.Text) else [one.text for one in part.parts] for part in turn.parts] for turn in request.turns]


def test_nothing_to_prune_leaves_the_request_itself():
    assert prune(REQUEST, ()) is REQUEST
    assert prune(REQUEST, {"/elsewhere"}) == REQUEST


@pytest.mark.parametrize(
    ("places", "left"),
    [
        ({"/t/0/1"}, [["a"], [["x", "y"]], ["z"]]),
        ({"/t/1/0/0"}, [["a", "b"], [["y"]], ["z"]]),
        ({"/t/1/0/0", "/t/1/0/1"}, [["a", "b"], [[]], ["z"]]),
        ({"/t/1"}, [["a", "b"], ["z"]]),
        ({"/t/2/0"}, [["a", "b"], [["x", "y"]]]),
    ],
)
def test_parts_go_and_turns_without_parts_with_them(places, left):
    assert words(prune(REQUEST, places)) == left


def test_tools_settings_and_single_nodes_go():
    pruned = prune(REQUEST, {"/tools/0", "/choice", "/effort", "/format", "/seed"})
    assert [tool.name for tool in pruned.tools] == ["g"]
    assert (pruned.choice, pruned.effort, pruned.format) == (None, None, None)
    assert (pruned.settings.seed, pruned.settings.user) == (None, "u")


SEAL = ir.Seal("a+/b=\x7fü", ir.SealKind.SIGNATURE, MESSAGES, id="rs_1")
WRAPPED = seals.wrap(SEAL, "anthropic")


def test_an_envelope_gives_back_the_token_and_who_minted_it():
    assert WRAPPED.startswith(seals.PREFIX)
    assert seals.unwrap(WRAPPED) == ir.Seal(SEAL.token, SEAL.kind, MESSAGES, "anthropic", "rs_1")


@pytest.mark.parametrize("length", range(6))
def test_the_alphabet_for_urls_and_missing_padding_are_read_too(length):
    seal = ir.Seal("\x7f?~ÿ>" + "x" * length, ir.SealKind.THOUGHT, GEMINI, "google")
    safe = base64.urlsafe_b64encode(base64.b64decode(seals.wrap(seal, "google"))).decode()
    assert seals.unwrap(safe) == seals.unwrap(safe.rstrip("=")) == seal


def envelope(inside):
    return base64.b64encode(b"asgi-surface" + inside).decode()


FOREIGN = {
    "bare token": "ErUBCkYIBxgCIkD",
    "nothing": "",
    "only the beginning": seals.PREFIX,
    "truncated": WRAPPED[:-9],
    "half a character": WRAPPED.rstrip("=")[:-3] + "A",
    "another alphabet": WRAPPED[:20] + "!" + WRAPPED[21:],
    "no ASCII": WRAPPED + "ü",
    "damaged": seals.PREFIX + "AAAA" + WRAPPED[20:],
    "no envelope within": envelope(b'{"domain":"x"}'),
    "a kind that is none": envelope(b'["x","anthropic-messages","magic","t"]'),
    "no JSON": envelope(b"["),
    "no UTF-8": envelope(b'["x","anthropic-messages","signature","\xff"]'),
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_whole_envelope_is_a_bare_token_of_the_client_s_surface(text):
    assert seals.unwrap(text) is None
    assert seals.received(text, ir.SealKind.ENCRYPTED, RESPONSES) == ir.Seal(text, ir.SealKind.ENCRYPTED, RESPONSES)


def test_a_received_envelope_is_opened():
    assert seals.received(WRAPPED, ir.SealKind.ENCRYPTED, RESPONSES) == seals.unwrap(WRAPPED)
