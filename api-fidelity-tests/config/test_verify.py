"""`asgi-surface verify`: what each probe makes of an answer, and what is printed of an honest server and of a liar, over real sockets."""

from __future__ import annotations

import base64
import json
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from msgspec import Raw

from asgi_surface import cli, samples, verify
from asgi_surface.codecs import CODECS
from asgi_surface.codecs.base import Dialect, Target
from asgi_surface.errors import Code
from asgi_surface.probes import PROBES, Answer, Finding, Refused, Verdict, text
from asgi_surface.surfaces import CARRIES, CHAT, GEMINI, MESSAGES, RESPONSES, Feature, Operation

HOLDS, FALSE, OPEN = Verdict
PATHS = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages", GEMINI: "/v1beta/models/{model}:{method}"}
REFUSED, BUSY = Refused(Code.UPSTREAM_REJECTED, 400), Refused(Code.UPSTREAM_RATE_LIMITED, 429)


def chat(content="Hello.", *, finish="stop", tokens=None, choice=None, **message):
    """A Chat answer."""
    one = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish, **(choice or {})}
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [one], **usage}


def called(*names, arguments='{"city": "Paris"}'):
    calls = [{"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": arguments}} for at, name in enumerate(names)]
    return chat(None, finish="tool_calls", tool_calls=calls)


CUSTOM = chat(None, finish="tool_calls", tool_calls=[{"id": "call_0", "type": "custom", "custom": {"name": "run_shell", "input": "ls"}}])
SPENT = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 8}}


def responses(*items, **more):
    """A Responses answer."""
    said = {"type": "message", "id": "i", "role": "assistant", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": "Hello.", "annotations": []}]
    return {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [*items, said], **more}


def sealed(text="", token="c2VhbA=="):
    return {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": token}


def messages(*blocks):
    """A Messages answer."""
    content = list(blocks) or [{"type": "text", "text": "Hello."}]
    usage = {"input_tokens": 3, "output_tokens": 2}
    return {"id": "a", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "end_turn", "usage": usage}


def run(probe, surface, replies):
    """Plays a probe against these replies: its finding, and how often it asked."""
    replies, asked = list(replies), 0
    try:
        next(probe)
        while True:
            asked += 1
            reply = replies.pop(0)
            if isinstance(reply, Refused):
                probe.throw(reply)
            else:
                probe.send(_answer(surface, reply))
    except StopIteration as stop:
        return stop.value, asked
    except Refused as refused:
        return refused.finding, asked


def said(ask, surface):
    """The members of a request as the surface says them."""
    target = Target(model="m", dialect=Dialect(), seal_domain="d", features=CARRIES[surface])
    more = {name: Raw(json.dumps(value).encode()) for name, value in ask.more.get(surface, {}).items()}
    return CODECS[surface].lower(ask.request, target).members | more


def _answer(surface, reply):
    streamed = reply == "stream"
    return Answer(CODECS[surface], b"" if streamed else json.dumps(reply).encode(), streamed)


F = Feature
JUDGED = [
    (F.STREAMING, CHAT, ["stream"], HOLDS, ""),
    (F.STREAMING, CHAT, [chat()], FALSE, "the upstream does not stream"),
    (F.STREAMING, CHAT, [Refused(Code.UPSTREAM_TRUNCATED, 200)], FALSE, "upstream_truncated, upstream status 200"),
    (F.TOOLS, CHAT, [called("get_time")], HOLDS, ""),
    (F.TOOLS, CHAT, [called("get_time", arguments="{")], FALSE, "the call cannot be read"),
    (F.TOOLS, CHAT, [called("other")], FALSE, "the call cannot be read"),
    (F.TOOLS, CHAT, [chat("", finish="length", reasoning_content="Hm,")], OPEN, "the answer was cut off"),
    (F.TOOLS, CHAT, [chat("It is", finish="length")], FALSE, "no call came"),
    (F.TOOLS, CHAT, [chat()], FALSE, "no call came"),
    (F.TOOLS, CHAT, [REFUSED, called("get_time")], HOLDS, ""),
    (F.TOOLS, CHAT, [REFUSED, REFUSED], FALSE, "upstream_rejected, upstream status 400"),
    (F.TOOLS, CHAT, [BUSY], OPEN, "upstream_rate_limited, upstream status 429"),
    (F.TOOLS, CHAT, [Refused(Code.FIELD_REJECTED)] * 2, FALSE, "field_rejected"),
    (F.PARALLEL_TOOLS, CHAT, [called("get_time", "get_weather")], HOLDS, ""),
    (F.PARALLEL_TOOLS, CHAT, [called("get_time")], OPEN, "the model made one call only"),
    (F.PARALLEL_TOOLS, CHAT, [chat()], FALSE, "no call came"),
    (F.CUSTOM_TOOLS, CHAT, [CUSTOM], HOLDS, ""),
    (F.CUSTOM_TOOLS, CHAT, [called("run_shell")], FALSE, "no custom call came"),
    (F.REASONING, CHAT, [chat(reasoning_content="Hm.")], HOLDS, ""),
    (F.REASONING, CHAT, [chat() | {"usage": SPENT}], HOLDS, ""),
    (F.REASONING, CHAT, [chat(tokens=3)], FALSE, "no reasoning in answer or usage"),
    (F.ENCRYPTED_REASONING, RESPONSES, [responses(sealed())], HOLDS, ""),
    (F.ENCRYPTED_REASONING, RESPONSES, [responses(sealed("Hm.", None))], FALSE, "no sealed reasoning came"),
    (F.ENCRYPTED_REASONING, MESSAGES, [messages({"type": "thinking", "thinking": "", "signature": "c2VhbA=="})], HOLDS, ""),
    (F.STRUCTURED_OUTPUT, CHAT, [chat('{"answer": "no"}')], HOLDS, ""),
    (F.STRUCTURED_OUTPUT, CHAT, [chat('{"answer": "wet"}')], FALSE, "the answer does not match the schema"),
    (F.STRUCTURED_OUTPUT, CHAT, [chat("Yes, it is.")], FALSE, "the answer is no JSON"),
    (F.STRUCTURED_OUTPUT, CHAT, [chat('{"answer":', finish="length")], OPEN, "the answer was cut off"),
    (F.STRUCTURED_OUTPUT, CHAT, [chat("Yes, it", finish="length")], FALSE, "the answer is no JSON"),
    (F.IMAGES, CHAT, [chat("It is RED.")], HOLDS, ""),
    (F.IMAGES, CHAT, [chat(tokens=99), chat(tokens=9)], HOLDS, ""),
    (F.IMAGES, CHAT, [chat(tokens=9), chat(tokens=9)], FALSE, "it was not counted as input, nor does the answer show that it was read"),
    (F.IMAGES, CHAT, [chat(), chat(tokens=9)], OPEN, "neither answer nor usage shows that it was read"),
    (F.FILES, CHAT, [chat("Violet")], HOLDS, ""),
    (F.FILES, CHAT, [REFUSED], FALSE, "upstream_rejected, upstream status 400"),
    (F.AUDIO, CHAT, [chat(tokens=20), chat(tokens=9)], HOLDS, ""),
    (F.LOGPROBS, CHAT, [chat(choice={"logprobs": {"content": [{"token": "a", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}})], HOLDS, ""),
    (F.LOGPROBS, CHAT, [chat()], FALSE, "no log probabilities came"),
    (F.MULTIPLE_CHOICES, CHAT, [chat() | {"choices": [{**chat()["choices"][0], "index": at} for at in (0, 1)]}], HOLDS, ""),
    (F.MULTIPLE_CHOICES, CHAT, [chat()], FALSE, "two answers were asked for, and came not"),
    (F.MID_CONVERSATION_SYSTEM, CHAT, [chat()], HOLDS, ""),
    (F.MID_CONVERSATION_SYSTEM, CHAT, [chat("", finish="length")], HOLDS, ""),
    (F.MID_CONVERSATION_SYSTEM, CHAT, [chat("")], FALSE, "an empty answer"),
    (F.MID_CONVERSATION_SYSTEM, CHAT, [{"choices": "none"}], FALSE, "upstream_bad_response, upstream status 200"),
    (F.COUNT_TOKENS, MESSAGES, [{"input_tokens": 7}], HOLDS, ""),
    (F.COUNT_TOKENS, GEMINI, [{"totalTokens": 7}], HOLDS, ""),
    (F.COUNT_TOKENS, GEMINI, [{"totalTokens": 0}], FALSE, "no count came"),
    (F.COUNT_TOKENS, MESSAGES, [{"input_tokens": True}], FALSE, "no count came"),
    (F.COUNT_TOKENS, MESSAGES, [["no object"]], FALSE, "upstream_bad_response, upstream status 200"),
    (F.HOSTED_TOOLS, RESPONSES, [responses({"type": "web_search_call", "id": "ws", "status": "completed"})], HOLDS, ""),
    (F.HOSTED_TOOLS, RESPONSES, [responses(tools=[{"type": "web_search"}])], OPEN, "the model did not search"),
    (F.STORED_RESPONSES, RESPONSES, [responses(), responses()], HOLDS, ""),
    (F.STORED_RESPONSES, RESPONSES, [responses(), REFUSED], FALSE, "upstream_rejected, upstream status 400"),
    (F.STORED_RESPONSES, RESPONSES, [responses(id=None)], FALSE, "an answer without an id"),
    (F.BACKGROUND, RESPONSES, [responses(status="queued", background=True)], HOLDS, ""),
    (F.BACKGROUND, RESPONSES, [responses()], FALSE, "the answer was not made in the background"),
    (F.PROMPT_CACHE, CHAT, [], OPEN, "only long prompts are cached"),
]


@pytest.mark.parametrize(("feature", "surface", "replies", "verdict", "why"), JUDGED, ids=[f"{one[0]}-{at}" for at, one in enumerate(JUDGED)])
def test_what_answers_say_of_a_feature(feature, surface, replies, verdict, why):
    assert run(PROBES[feature](""), surface, replies) == (Finding(verdict, why), len(replies))


# What is asked for by other words than those that demand it: a seal comes with reasoning, and Gemini's calls may always be parallel.
UNDEMANDED = {(MESSAGES, F.ENCRYPTED_REASONING), (GEMINI, F.ENCRYPTED_REASONING), (GEMINI, F.PARALLEL_TOOLS)}
ASKED = [(surface, feature) for surface in CARRIES for feature in Feature if feature in CARRIES[surface] - {F.PROMPT_CACHE, F.COUNT_TOKENS}]


@pytest.mark.parametrize(("surface", "feature"), [one for one in ASKED if one not in UNDEMANDED])
def test_the_request_of_a_probe_demands_the_feature(surface, feature):
    ask = next(PROBES[feature](""))
    demands = CODECS[surface].needs(said(ask, surface), ask.request.stream).demands
    assert feature in {demand.feature for demand in demands}


def test_every_feature_has_a_probe():
    assert set(PROBES) == set(Feature)


def test_the_samples_are_what_they_are_called():
    png, pdf, wav = (base64.b64decode(one) for one in (samples.png(), samples.pdf(), samples.wav()))
    place = png.index(b"IDAT")
    pixels = zlib.decompress(png[place + 4 : place + 4 + int.from_bytes(png[place - 4 : place], "big")])
    assert (png[:8], pixels) == (b"\x89PNG\r\n\x1a\n", (b"\x00" + b"\xff\x00\x00" * 64) * 64)
    start = int(pdf.split(b"startxref\n")[1].split()[0])
    assert (pdf[:5], pdf[start : start + 4], pdf[int(pdf[start:].splitlines()[3].split()[0]) :][:7]) == (b"%PDF-", b"xref", b"1 0 obj")
    assert (wav[:4], int.from_bytes(wav[4:8], "little"), len(wav) - 8) == (b"RIFF", 4036, 4036)
    assert samples.WORD.encode() in pdf


# Servers.


def _sse(*events, named):
    return "".join((f"event: {one['type']}\n" if named else "") + f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in events)


def _calls(body):
    """Every function that was offered, called; custom tools are taken for functions."""
    return [tool["function"]["name"] for tool in body["tools"]] if all("function" in tool for tool in body["tools"]) else ["run_shell"]


def liar_chat(_path, body):
    """Answers with text, streams, calls, keeps to schemas and reads pictures; of the rest it only says so."""
    asked = json.dumps(body)
    if body.get("stream"):
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        deltas = ({"role": "assistant", "content": "Hello."}, None), ({}, "stop")
        chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in deltas]
        return 200, _sse(*chunks, "[DONE]", named=False)
    if [one["role"] for one in body["messages"]].count("system"):
        return 400, {"error": {"message": "SECRET no system here", "type": "invalid_request_error", "param": None, "code": None}}
    if "tools" in body:
        return 200, called(*_calls(body))
    return 200, chat('{"answer": "yes"}' if "response_format" in body else "Hello.", tokens=80 if "image_url" in asked else 9)


def liar_messages(path, body):
    """Answers with text; its stream stops in the middle, its count is a word, and what it thinks nobody signed."""
    if path.endswith("/count_tokens"):
        assert "max_tokens" not in body
        return 200, {"input_tokens": "seven"}
    if body.get("stream"):
        start = {"type": "message_start", "message": {**messages(), "content": [], "stop_reason": None}}
        return 200, _sse(start, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, named=True)
    return 200, messages({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hello."}) if "thinking" in body else messages()


def liar_responses(_path, body):
    """Answers a stream with a document, and forgets what it was to store."""
    if "previous_response_id" in body:
        return 404, {"error": {"message": "not here", "type": "invalid_request_error", "param": None, "code": None}}
    return 200, responses(background=bool(body.get("background")))


def honest_gemini(path, body):
    """Does what was declared."""
    if path.endswith(":countTokens"):
        assert set(body) == {"contents"}
        return 200, {"totalTokens": 4}
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP", "index": 0}]}
    if "tools" in body:
        call = {"name": body["tools"][0]["functionDeclarations"][0]["name"], "args": {"city": "Paris"}}
        said["candidates"][0]["content"]["parts"] = [{"functionCall": call}]
    return 200, _sse(said, named=False) if "streamGenerateContent" in path else said


def honest_zed(path, body):
    """Chat in Zed's envelope."""
    assert body["provider"] == "x_ai"
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk = {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]}
    return 200, json.dumps({"event": chunk}) + '\n{"status":"stream_ended"}\n'


@pytest.fixture
def serve():
    """Starts a server that answers by a function of path and body, and gives its base URL. An answer that is text is a stream."""
    servers, over = [], threading.Event()

    def start(answer):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                status, said = answer(self.path.partition("?")[0], json.loads(self.rfile.read(int(self.headers["content-length"]))))
                lines = isinstance(said, str)
                media = "text/event-stream" if lines and said[0] in "de" else "application/x-ndjson" if lines else "application/json"
                data = (said if lines else json.dumps(said)).encode()
                self.send_response(status)
                for name, value in (("content-type", media), ("content-length", str(len(data))), *((ZED,) if media.endswith("ndjson") else ())):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                """Nothing is logged."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    start.over = over
    yield start
    over.set()
    for server in servers:
        server.shutdown()
        server.server_close()


ZED = ("x-zed-server-supports-status-messages", "true")
ROUTE = """
[auth]
mode = "keys"
[[keys]]
name = "ada"
sha256 = "{digest}"
[providers.up]
base_url = "{url}"
{provider}
[[routes]]
route_id = "up"
models = ["m", "glob-*"]
upstream_model = "{model}"
provider = "up"
inbound_contract = "responses-bounded-text"
tolerate = ["tools"]
[[routes.api_bindings]]
surface = "{surface}"
path = "{path}"
features = {features}
{binding}
"""


def main(*arguments):
    """The command in a thread of its own: CPython 3.11 loses trace events where a cancellation unwinds coroutines, as requests end."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(cli.main, ["verify", *arguments]).result()


@pytest.fixture
def verified(serve, tmp_path, capsys, monkeypatch):
    """Runs the command on a route to such a server: its exit status, and what it printed."""

    def check(answer, surface, features, *arguments, model="m", provider="", binding="", path=None):
        listed = json.dumps([str(feature) for feature in Feature if feature in features])
        url = answer if isinstance(answer, str) else serve(answer)
        told = {"digest": "0" * 64, "url": url, "provider": provider, "model": model, "binding": binding}
        file = tmp_path / "routes.toml"
        file.write_text(ROUTE.format(surface=surface, path=path or PATHS[surface], features=listed, **told))
        monkeypatch.delenv("PROBE_KEY", raising=False)
        status = main(str(file), *arguments)
        return status, capsys.readouterr().out

    return check


def test_a_liar_on_chat(verified):
    status, out = verified(liar_chat, CHAT, CARRIES[CHAT])
    assert status == 1
    assert (
        out
        == """\
up/openai-chat-completions
  text                    holds
  streaming               holds
  tools                   holds
  parallel-tools          holds
  reasoning               does not hold: no reasoning in answer or usage
  images                  holds
  files                   does not hold: it was not counted as input, nor does the answer show that it was read
  audio                   does not hold: it was not counted as input, nor does the answer show that it was read
  structured-output       holds
  hosted-tools            cannot be told: the model did not search
  custom-tools            does not hold: no custom call came
  prompt-cache            cannot be told: only long prompts are cached
  logprobs                does not hold: no log probabilities came
  multiple-choices        does not hold: two answers were asked for, and came not
  mid-conversation-system does not hold: upstream_rejected, upstream status 400
  features = ["streaming", "tools", "parallel-tools", "images", "structured-output", "hosted-tools", "prompt-cache"]
"""
    )


def test_a_liar_on_messages(verified):
    status, out = verified(liar_messages, MESSAGES, {F.STREAMING, F.REASONING, F.ENCRYPTED_REASONING, F.COUNT_TOKENS})
    assert status == 1
    assert (
        out
        == """\
up/anthropic-messages
  text                    holds
  streaming               does not hold: upstream_truncated, upstream status 200
  reasoning               holds
  encrypted-reasoning     does not hold: no sealed reasoning came
  count-tokens            does not hold: no count came
  features = ["reasoning"]
"""
    )


def test_a_liar_on_responses(verified):
    status, out = verified(liar_responses, RESPONSES, {F.STREAMING, F.TOOLS, F.PARALLEL_TOOLS, F.STORED_RESPONSES, F.BACKGROUND})
    assert status == 1
    assert (
        out
        == """\
up/openai-responses
  text                    holds
  streaming               does not hold: the upstream does not stream
  tools                   does not hold: no call came
  parallel-tools          does not hold: no call came
  stored-responses        does not hold: upstream_rejected, upstream status 404
  background              holds
  features = ["background"]
"""
    )


def test_an_honest_server_on_gemini(verified):
    status, out = verified(honest_gemini, GEMINI, {F.TOOLS, F.COUNT_TOKENS}, "--route", "up")
    assert (status, out) == (
        0,
        """\
up/gemini-generate-content
  text                    holds
  tools                   holds
  count-tokens            holds
  streaming               holds, and could be declared too
""",
    )


def test_a_server_that_is_declared_never_to_stream(verified):
    status, out = verified(liar_responses, RESPONSES, {F.STREAMING}, binding='dialect = { stream = "never" }')
    assert (status, out) == (0, "up/openai-responses\n  text                    holds\n  streaming               holds\n")


def test_a_zed_server(verified):
    status, out = verified(honest_zed, "zed-completions", {F.STREAMING}, binding='dialect = { zed_provider = "x_ai" }', path="/completions")
    assert (status, out) == (0, "up/zed-completions\n  text                    holds\n  streaming               holds\n")


def test_what_the_policy_keeps_in_is_no_feature(verified, serve):
    """A member that the gateway adds by itself is left out; one that the feature needs is missed."""
    names = '["model", "messages", "max_completion_tokens", "stream"]'
    policy = f'[policies.tight]\nsurface = "{CHAT}"\nallowed_fields = {names}'
    status, out = verified(liar_chat, CHAT, {F.STREAMING, F.LOGPROBS}, provider=policy, binding='request_policy = "tight"')
    assert status == 1
    assert "  streaming               holds\n  logprobs                does not hold: field_rejected\n" in out


def test_what_the_dialect_has_no_words_for_is_no_feature(verified):
    binding = 'dialect = { reasoning_style = "budget", reasoning_budgets = { low = 1024 } }'
    status, out = verified(honest_gemini, GEMINI, {F.STREAMING, F.TOOLS, F.REASONING}, binding=binding)
    assert (status, out.splitlines()[-2:]) == (1, ["  reasoning               does not hold: unrepresentable", '  features = ["streaming", "tools"]'])


@pytest.mark.parametrize(
    ("provider", "model", "arguments", "said"),
    [
        ('auth = { header = "authorization", env = "PROBE_KEY" }', "m", (), "PROBE_KEY is not set"),
        ("", "{model}", (), ""),
        ("", "{model}", ("--model", "glob-1"), ""),
        ("", "{model}", ("--model", "unknown"), ""),
    ],
)
def test_what_a_binding_is_asked_for(verified, provider, model, arguments, said):
    asked = []

    def answer(_path, body):
        asked.append(body["model"])
        return 200, chat()

    status, out = verified(answer, CHAT, (), *arguments, model=model, provider=provider)
    if said:
        assert (status, out, asked) == (1, f"up/{CHAT}: cannot be asked: {said}\n", [])
    else:
        assert (status, asked[0]) == (0, "glob-1" if "glob-1" in arguments else "m")


def test_a_route_that_serves_any_model_needs_a_name(tmp_path, capsys):
    file = tmp_path / "routes.toml"
    text = ROUTE.format(
        digest="0" * 64, url="http://127.0.0.1:9", provider="", model="{model}", surface=CHAT, path=PATHS[CHAT], features=[], binding=""
    )
    file.write_text(text.replace('"m", ', ""))
    assert main(str(file)) == 1
    assert capsys.readouterr().out == f"up/{CHAT}: cannot be asked: name a model with --model\n"


def test_a_credential_of_the_environment_or_of_a_command_is_no_lack(verified, monkeypatch):
    auth = 'auth = { header = "authorization", env = "PATH" }'
    assert verified(liar_chat, CHAT, (), provider=auth)[0] == 0
    auth = 'auth = { header = "authorization", env = "PROBE_KEY", command = ["echo", "key"] }'
    assert verified(liar_chat, CHAT, (), provider=auth)[0] == 0


def test_a_server_that_is_not_there(verified):
    status, out = verified("http://127.0.0.1:9", CHAT, {F.STREAMING})
    assert status == 1
    assert (
        out
        == f"""\
up/{CHAT}
  text                    cannot be told: upstream_unreachable
  streaming               cannot be told: there is no text answer
"""
    )


def test_a_server_that_takes_too_long(verified, serve):
    def answer(_path, body):
        if body.get("stream"):
            serve.over.wait(20)
        return 200, chat()

    status, out = verified(answer, CHAT, {F.STREAMING}, "--timeout", "0.4")
    assert (status, out.splitlines()[2]) == (0, "  streaming               cannot be told: upstream_timeout")


def test_echo_holds_what_the_shipped_file_declares(capsys, pytestconfig):
    assert main(str(pytestconfig.rootpath / "routes.toml"), "--route", "echo") == 0
    features = ["text", "streaming", "tools", "parallel-tools", "reasoning"]
    assert capsys.readouterr().out == "echo/openai-chat-completions\n" + "".join(f"  {one:<24}holds\n" for one in features)


def test_an_embedded_model_that_cannot_run_here(capsys, monkeypatch, pytestconfig):
    class Missing:
        def unavailable(self):
            return "its weights are missing"

    monkeypatch.setattr(verify, "EMBEDDED", {"llama-cpp": Missing})
    assert main(str(pytestconfig.rootpath / "routes.toml"), "--route", "local") == 1
    assert capsys.readouterr().out == "".join(f"local/{one}: cannot be asked: its weights are missing\n" for one in (CHAT, MESSAGES))


def test_a_bad_file_and_a_route_that_is_not_there(capsys, tmp_path, pytestconfig):
    assert main(str(tmp_path / "none.toml")) == 1
    with pytest.raises(SystemExit) as caught:
        main(str(pytestconfig.rootpath / "routes.toml"), "--route", "nowhere")
    assert caught.value.code == 2
    assert "no route 'nowhere'" in capsys.readouterr().err


def test_the_probe_of_text_asks_once():
    assert run(text(), CHAT, [chat()])[0] == Finding(HOLDS)
    assert str(Finding(HOLDS)) == "holds"
    assert next(text()).operation is Operation.GENERATE
