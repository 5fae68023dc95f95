"""Interceptors see each answer once, whatever way it leaves, and each request before it is judged; without them nothing is looked at."""

from __future__ import annotations

import json
import logging

import pytest
from msgspec import Raw
from msgspec.structs import replace

from asgi_surface import Gateway, RouteCandidate, interception
from asgi_surface.codecs import CODECS
from asgi_surface.errors import Code, RequestError, UpstreamError
from asgi_surface.framing import Frame, Framing, splitter
from asgi_surface.inbound import read
from asgi_surface.interception import Document, Interceptor, Rewriter
from asgi_surface.layers.exchange import Ending
from asgi_surface.layers.planning import Planning
from asgi_surface.lifecycle import Kind
from asgi_surface.planner import decide
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Operation

WIRES = [CHAT, RESPONSES, MESSAGES, GEMINI, "array"]
SURFACES = WIRES[:4]
PAIRS = [(client, upstream) for client in WIRES for upstream in SURFACES if client != upstream and {client, upstream} != {"array", GEMINI}]
CUT = UpstreamError(Code.UPSTREAM_TRUNCATED, "the upstream's answer broke off")
PINGS = {CHAT: b": warm\n\n", RESPONSES: b'data: {"type": "keepalive"}\n\n', GEMINI: b": warm\n\n", "array": b"\n"}


class Hook(Interceptor):
    """Applies everywhere (or not), and is told everything. `frame`, `document` and `members` are what it makes of what it sees."""

    def __init__(self, name="hook", *, wanted=True, frame=lambda frame: (frame,), document=lambda body: body, members=lambda members: members):
        self.name = name
        self.wanted, self.frame, self.document, self.members = wanted, frame, document, members
        self.asked, self.plans, self.seen = [], [], []

    def applies(self, surface, route_id, members):
        self.asked.append((surface, route_id, *members))
        return self.wanted

    def request(self, members):
        return self.members(super().request(members))

    def open(self, plan):
        self.plans.append(plan)
        return Told(self)


class Told(Rewriter):
    def __init__(self, hook):
        self.hook = hook

    def frame(self, frame):
        self.hook.seen.append(frame.data)
        return [after for same in super().frame(frame) for after in self.hook.frame(same)]

    def document(self, status, body):
        self.hook.seen.append((status, body))
        return self.hook.document(super().document(status, body))


def fail(*_):
    raise ValueError("the hook's own words")


@pytest.fixture
def run(ask, catalog, upstream, wires, records):
    """One request through a gateway with these hooks to a scripted upstream. Gives the wire, the reply, the upstream's calls and the record."""

    def one(name, *hooks, stream=False, surfaces=(), body=None, headers=(), members=None, options=None, **script):
        wire, up = wires[name], upstream(**script)
        path, asked = wire.ask(stream=stream, **(members or {}))
        app = Gateway(catalog=catalog(*(surfaces or [wire.surface]), **(options or {})), upstream=up, record=records.append, interceptors=hooks)
        reply = ask(app, path, asked if body is None else body, headers=headers)
        assert reply.whole
        assert reply.headers.get("content-length", str(len(reply.body))) == str(len(reply.body))
        record = records.pop()
        assert record.bytes == len(reply.body)
        return wire, reply, up.calls, record

    return one


def sent(name, body):
    """The data of the frames in a streamed body that are no pings."""
    framing = Framing.JSON_ARRAY if name == "array" else Framing.SSE
    cutter = splitter(framing, len(body) + 1)
    watch = CODECS[GEMINI if name == "array" else name].watch()
    frames = [*cutter.feed(body), cutter.eof() or Frame(b"", b"", b"")]
    return [frame.data for frame in frames if frame.data and watch.see(frame).alive]


def before_finish(name, data):
    """How many of a stream's frames come before the one that tells the finish."""
    watch = CODECS[GEMINI if name == "array" else name].watch()
    finishes = [Kind.FINISH in {signal.kind for signal in watch.see(Frame(b"", b"", one)).signals} for one in data]
    return finishes.index(True)


# Each exit once -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SURFACES)
def test_a_native_document_is_seen_once(run, wires, name):
    hook = Hook()
    _, reply, _, record = run(name, hook, chunks=[wires[name].document])
    assert hook.seen == [(200, reply.body)] == [(200, wires[name].document)]
    assert [plan.interceptors for plan in hook.plans] == [("hook",)]
    assert hook.asked == [(name, "up:model", *wires[name].body)]
    assert record.ending is Ending.COMPLETED


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("cut", ["frames", "one chunk", "bytes"])
def test_a_native_stream_is_seen_frame_by_frame_but_for_pings(run, wires, name, cut):
    frames = wires[name].frames
    frames = [frames[0], PINGS.get(name, b'event: ping\ndata: {"type": "ping"}\n\n'), *frames[1:]]
    whole = b"".join(frames)
    chunks = {"frames": frames, "one chunk": [whole], "bytes": [bytes([byte]) for byte in whole]}[cut]
    hook = Hook()
    wire, reply, _, record = run(name, hook, stream=True, chunks=chunks)
    assert reply.body.strip() == whole.strip()
    assert hook.seen == sent(name, whole)
    assert len(hook.seen) == len(wire.frames) - (name == "array")
    assert record.ending is Ending.COMPLETED


@pytest.mark.parametrize(("client", "origin"), [pair for pair in PAIRS if pair[0] != "array"])
def test_a_converted_document_is_seen_once(run, wires, client, origin):
    hook = Hook()
    _, reply, calls, _ = run(client, hook, surfaces=[origin], chunks=[wires[origin].document])
    assert (reply.status, reply.headers["x-surface-mode"], len(calls)) == (200, f"{client}->{origin}", 1)
    assert hook.seen == [(200, reply.body)]
    assert reply.body != wires[origin].document


@pytest.mark.parametrize(("client", "origin"), PAIRS)
@pytest.mark.parametrize("broken", [False, True])
def test_a_converted_stream_is_seen_frame_by_frame(run, wires, client, origin, broken):
    hook = Hook()
    frames = wires[origin].frames
    wire, reply, _, _ = run(client, hook, stream=True, surfaces=[origin], chunks=[*frames[:-1], CUT] if broken else frames)
    assert reply.status == 200
    assert hook.seen == sent(client, reply.body)
    assert wire.end(reply.body) == ("error" if broken else "end")


@pytest.mark.parametrize(("client", "origin"), [*PAIRS, *((name, name) for name in SURFACES), ("array", GEMINI)])
def test_an_answer_that_crosses_transports_is_seen_as_the_client_gets_it(run, wires, client, origin):
    if client != "array":
        folded = Hook()
        _, reply, _, _ = run(client, folded, surfaces=[origin], chunks=wires[origin].frames)
        assert (reply.status, folded.seen) == (200, [(200, reply.body)])
    unfolded = Hook()
    wire, reply, _, _ = run(client, unfolded, stream=True, surfaces=[origin], chunks=[wires[origin].document])
    assert (reply.status, unfolded.seen) == (200, sent(client, reply.body))
    assert wire.end(reply.body) == "end"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("script", [{"status": 429, "chunks": [b"{}"]}, {"fails": CUT}, {"status": 200, "chunks": [b"<html>"]}])
def test_an_error_document_is_seen_once(run, name, stream, script):
    hook = Hook()
    _, reply, _, record = run(name, hook, stream=stream, **script)
    assert hook.seen == [(reply.status, reply.body)]
    assert (record.ending, reply.status) == (Ending.FAILED, 429 if script.get("status") == 429 else 502)


@pytest.mark.parametrize("name", WIRES)
def test_an_error_in_a_stream_is_seen_once(run, wires, name):
    hook = Hook()
    wire, reply, _, record = run(name, hook, stream=True, chunks=[wires[name].frames[0], CUT])
    assert hook.seen == sent(name, reply.body)
    assert (len(hook.seen), wire.end(reply.body), record.ending) == (2, "error", Ending.FAILED)


def test_a_dry_run_shows_the_plan_and_asks_no_rewriter(run):
    hook = Hook()
    _, reply, calls, _ = run(CHAT, hook, headers=[("x-surface-dry-run", "true")])
    assert (reply.json["interceptors"], calls) == (["hook"], [])
    assert (len(hook.asked), hook.plans, hook.seen) == (1, [], [])


def test_a_refusal_that_no_plan_stands_behind_is_not_seen(run):
    hook = Hook()
    _, reply, calls, _ = run(CHAT, hook, members={"frobnicate": 1})
    assert (reply.status, calls, hook.plans, hook.seen) == (400, [], [], [])


# Nothing where none applies -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize(("hooks", "made"), [((), 0), ((Hook(wanted=False),), 0), ((Hook(),), 1)])
def test_without_an_interceptor_nothing_is_split(run, wires, monkeypatch, name, hooks, made):
    calls = []
    monkeypatch.setattr(interception, "splitter", lambda *arguments: calls.append(arguments) or splitter(*arguments))
    _, reply, _, _ = run(name, *hooks, stream=True, chunks=wires[name].frames)
    assert len(calls) == made
    assert reply.body.strip() == b"".join(wires[name].frames).strip()


def test_a_plan_without_interceptors_does_not_speak_of_them(run):
    _, reply, _, _ = run(CHAT, Hook(wanted=False), headers=[("x-surface-dry-run", "true")])
    assert "interceptors" not in reply.json


# What is replaced ---------------------------------------------------------------------------------------------------------------------------


def louder(body):
    return body.replace(b'"Hi"', b'"Hi, whoever you are"').replace(b"too fast", b"far too fast")


def frame_louder(frame):
    data = louder(frame.data)
    return (frame if data == frame.data else replace(frame, raw=b"", data=data),)


@pytest.mark.parametrize("name", SURFACES)
def test_a_replaced_document_reaches_the_client_with_its_length(run, wires, name):
    wire, reply, _, _ = run(name, Hook(document=louder), chunks=[wires[name].document])
    assert reply.body == louder(wire.document)
    _, reply, _, record = run(name, Hook(document=louder), status=429, chunks=[wire.error])
    assert reply.json["error"]["message"] == "far too fast"
    assert (reply.status, record.code) == (429, Code.UPSTREAM_RATE_LIMITED)


@pytest.mark.parametrize("name", WIRES)
def test_only_a_replaced_frame_is_written_anew(run, wires, name):
    frames = [frame.replace(b'"Hi"', b'"Hi" ') for frame in wires[name].frames]  # white space that only the upstream's bytes have
    wire, reply, _, _ = run(name, Hook(frame=frame_louder), stream=True, chunks=frames)
    assert reply.body.strip() == b"".join(map(louder, frames)).strip()
    assert wire.end(reply.body) == "end"
    assert b"whoever" in reply.body or name == GEMINI


def shown(frame, word):
    return Frame(b"", frame.event, b'{"candidates": [], "modelVersion": "%s"}' % word)


SHAPES = {
    "all as they are": (lambda frame: (frame,), "12"),
    "one before each": (lambda frame: (shown(frame, b"x"), frame), "x1x2"),
    "one behind each": (lambda frame: (frame, shown(frame, b"x")), "1x2x"),
    "without the first": (lambda frame: () if b"Hi" in frame.data else (frame,), "2"),
    "another first": (lambda frame: (shown(frame, b"x"),) if b"Hi" in frame.data else (frame,), "x2"),
    "nothing at all": (lambda frame: (), ""),
}


SILENT = pytest.mark.ungrammatical("the hook leaves nothing of the stream, so no end either")


@pytest.mark.parametrize("how", [pytest.param(how, marks=SILENT) if how == "nothing at all" else how for how in SHAPES])
@pytest.mark.parametrize("name", [GEMINI, "array"])
def test_any_number_of_frames_may_come_of_one(run, wires, name, how):
    change, expected = SHAPES[how]
    wire, reply, _, _ = run(name, Hook(frame=change), stream=True, chunks=wires[name].frames)
    names = {"Hi": "1", "!": "2"}
    told = [one.get("modelVersion") or names[one["candidates"][0]["content"]["parts"][0]["text"]] for one in wire.events(reply.body)]
    assert (reply.status, "".join(told)) == (200, expected)


def test_two_interceptors_stand_in_their_order(run, wires):
    def named(name):
        add = b"Hi" + name.encode()
        return Hook(
            name,
            frame=lambda frame: (replace(frame, data=frame.data.replace(b"Hi", add)),),
            document=lambda body: body.replace(b"Hi", add),
            members=lambda members: members | {"user": Raw(b'"' + bytes(members["user"])[1:-1] + name.encode() + b'"')},
        )

    for stream, chunks in ((False, [wires[CHAT].document]), (True, wires[CHAT].frames)):
        _, reply, [call], _ = run(CHAT, named("a"), named("b"), stream=stream, members={"user": ""}, chunks=chunks)
        assert b'"Hiba"' in reply.body
        assert call.json["user"] == "ab"


def test_a_document_in_pieces_is_one():
    hook = Hook()
    document = Document([Told(hook)], 200)
    assert [document.feed(b"{", last=False), document.feed(b"}", last=True)] == [b"", b"{}"]
    assert hook.seen == [(200, b"{}")]


# The request --------------------------------------------------------------------------------------------------------------------------------

ASKED = b'{ "model":"m",  "messages": [ {"role":"user",  "content":"hi"} ],"user":"u" }'


@pytest.mark.parametrize(
    ("hook", "sent"),
    [
        (Hook(wanted=False, members=fail), ASKED),
        (Hook(), ASKED),
        (Hook(members=dict), ASKED),
        (Hook(members=lambda members: members | {"user": Raw(b'"v"')}), b'{"model":"m","messages":[ {"role":"user",  "content":"hi"} ],"user":"v"}'),
        (
            Hook(members=lambda members: {k: v for k, v in members.items() if k != "user"}),
            b'{"model":"m","messages":[ {"role":"user",  "content":"hi"} ]}',
        ),
    ],
)
def test_natively_only_changed_members_are_written_anew(run, wires, hook, sent):
    _, _, [call], _ = run(CHAT, hook, body=ASKED, options={"upstream_model": "m"}, chunks=[wires[CHAT].document])
    assert call.body == sent


def test_what_is_changed_is_what_is_converted(run, wires):
    told = Raw(b'[{"role": "user", "content": "changed"}]')
    hook = Hook(members=lambda members: members | {"messages": told})
    _, reply, [call], _ = run(CHAT, hook, surfaces=[MESSAGES], chunks=[wires[MESSAGES].document])
    assert (reply.status, "changed" in json.dumps(call.json), '"hi"' in json.dumps(call.json)) == (200, True, False)


TOOLS = Raw(b'[{"type": "function", "function": {"name": "f"}}]')
JUDGED = {
    "the policy": ({"frobnicate": Raw(b"1")}, Code.FIELD_REJECTED, "/frobnicate"),
    "the features": ({"tools": TOOLS}, Code.FEATURE_UNSUPPORTED, "/tools"),
    "the shapes": ({"tools": Raw(b"1")}, Code.MALFORMED_BODY, "/tools"),
}


@pytest.mark.parametrize("by", JUDGED)
def test_what_is_changed_is_what_is_judged(run, by):
    added, code, pointer = JUDGED[by]
    hook = Hook(members=lambda members: members | added)
    _, reply, calls, record = run(CHAT, hook, options={"features": ["streaming"]})
    assert (reply.status, record.code, record.pointer, calls) == (400, code, pointer, [])


def test_what_is_taken_away_is_not_asked_of_the_upstream(run, wires):
    hook = Hook(members=lambda members: {name: raw for name, raw in members.items() if name != "tools"})
    tools = json.loads(bytes(TOOLS))
    _, reply, [call], _ = run(CHAT, hook, members={"tools": tools}, options={"features": []}, chunks=[wires[CHAT].document])
    assert (reply.status, "tools" in call.json) == (200, False)


def test_each_route_is_asked_about_once(catalog, wires):
    hook = Hook(members=lambda members: members | {"user": Raw(b'"u"')})
    inbound = read(CODECS[CHAT], Operation.GENERATE, json.dumps(wires[CHAT].body).encode())
    twice = [RouteCandidate("up:model", GEMINI), RouteCandidate("up:model", CHAT)]
    decision = decide(inbound, catalog(CHAT), twice, interceptors=[hook])
    assert (len(hook.asked), decision.plan.interceptors, decision.plan.upstream_surface) == (1, ("hook",), CHAT)


# Hooks that fail ----------------------------------------------------------------------------------------------------------------------------


class Unwilling(Hook):
    applies = fail


class Closed(Hook):
    open = fail


EARLY = {
    "applies": (Unwilling(), "the hook's own words"),
    "request": (Hook(members=fail), "the hook's own words"),
    "open": (Closed(), "the hook's own words"),
    "another model": (Hook(members=lambda members: members | {"model": Raw(b'"n"')}), "the interceptor hook changed `model`"),
    "another transport": (Hook(members=lambda members: members | {"stream": Raw(b"true")}), "the interceptor hook changed `stream`"),
}


@pytest.mark.parametrize("at", EARLY)
def test_a_hook_that_fails_before_the_upstream_is_an_internal_error(run, caplog, at):
    hook, words = EARLY[at]
    _, reply, calls, record = run(CHAT, hook)
    assert (reply.status, record.code, record.ending, calls) == (500, Code.INTERNAL, Ending.FAILED, [])
    assert words not in reply.body.decode()
    assert words in caplog.text


def test_a_hook_may_refuse_a_request(run):
    def refuse(_):
        raise RequestError(Code.UNSUPPORTED_REQUEST, "not this", pointer="/user")

    _, reply, calls, record = run(CHAT, Hook(members=refuse))
    assert (reply.status, record.code, record.ending, record.pointer, calls) == (400, Code.UNSUPPORTED_REQUEST, Ending.REJECTED, "/user", [])


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("status", [200, 429])
def test_a_hook_that_fails_on_a_document_is_an_internal_error(run, wires, caplog, name, status):
    _, reply, _, record = run(name, Hook(document=fail), status=status, chunks=[wires[name].document])
    assert (reply.status, record.code, record.ending) == (500, Code.INTERNAL, Ending.FAILED)
    assert (reply.headers["x-surface-error"], b"words" in reply.body, b"Hi" in reply.body) == (Code.INTERNAL, False, False)
    assert [one.message for one in caplog.records if one.levelno >= logging.ERROR] == ["an interceptor failed"]
    assert "own words" in caplog.text


FAULTS = {
    "it raises": fail,
    "it raises on the way": lambda frame: (fail(one) for one in (frame,)),
    "it is no frame": lambda frame: [replace(frame, data=b"{x")],
}


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("together", [False, True])
def test_a_hook_that_fails_in_a_stream_ends_it_with_one_error(run, wires, caplog, name, fault, together):
    """Every frame in turn. Before anything was sent the failure has its own status; a finish that waits for the end is not told before an error."""
    frames = wires[name].frames
    last = len(frames) - 1 - (name == "array")
    words = before_finish(name, sent(name, b"".join(frames)))
    for at in range(last + 1):
        left = iter(range(at))
        hook = Hook(frame=lambda frame, left=left: FAULTS[fault](frame) if next(left, None) is None else (frame,))
        first, *rest = [frames[0], b"".join(frames[1:])] if together else frames
        caplog.clear()
        more = [] if together or at == last else [60.0]  # an upstream that is left need not be waited for
        wire, reply, _, record = run(name, hook, stream=True, chunks=[first, *rest, *more])
        assert (record.code, record.ending, len(hook.seen)) == (Code.INTERNAL, Ending.FAILED, at + 1)
        assert [one.message for one in caplog.records if one.levelno >= logging.ERROR] == ["an interceptor failed"]
        assert b"own words" not in reply.body
        if at == 0:
            assert (reply.status, reply.headers["x-surface-error"]) == (500, Code.INTERNAL)
        else:
            events = wire.events(reply.body)
            assert (reply.status, len(events), wire.end(reply.body)) == (200, min(at, words) + 1, "error")
            assert [one["sequence_number"] for one in events if "sequence_number" in one] == list(range(at + 1)) * (name == RESPONSES)


@pytest.mark.parametrize(("client", "origin"), PAIRS)
def test_a_hook_that_fails_in_a_converted_stream_ends_it_with_one_error(run, wires, client, origin):
    """On the last frame, which the translation takes for its good end. No finish has been told by then."""
    count = Hook()
    run(client, count, stream=True, surfaces=[origin], chunks=wires[origin].frames)
    left = iter(count.seen[:-1])
    hook = Hook(frame=lambda frame: fail() if next(left, None) is None else (frame,))
    wire, reply, _, record = run(client, hook, stream=True, surfaces=[origin], chunks=wires[origin].frames)
    assert len(hook.seen) == len(count.seen)
    assert (record.code, record.ending, reply.status) == (Code.INTERNAL, Ending.FAILED, 200)
    assert (len(wire.events(reply.body)), wire.end(reply.body)) == (before_finish(client, count.seen) + 1, "error")


def streaming(name, framing=Framing.SSE, *, frame=lambda frame: (frame,)):
    return interception.Stream([Told(Hook(frame=frame))], framing, CODECS[name].watch, "r")


def test_a_finish_waits_for_the_end_and_what_follows_it_with_it(wires):
    said, done, usage, end = wires[CHAT].frames
    stream = streaming(CHAT)
    assert [stream.feed(one, last=False) for one in (said, done, usage, b": warm\n\n")] == [said, b"", b"", b""]
    assert stream.feed(end, last=False) == done + usage + b": warm\n\n" + end


def test_a_finish_waits_for_the_end_of_a_body_that_has_no_other_and_for_an_error(wires):
    *_, done = wires[GEMINI].frames
    stream = streaming(GEMINI)
    assert [stream.feed(done, last=False), stream.feed(b"", last=True)] == [b"", done]
    stream = streaming(GEMINI)
    error = b'data: {"error": {"code": 500, "message": "m"}}\n\n'
    assert [stream.feed(done, last=False), stream.feed(error, last=False)] == [b"", done + error]


def test_words_behind_a_finish_show_that_it_was_none(wires):
    *_, done = wires[GEMINI].frames
    stream = streaming(GEMINI)
    assert [stream.feed(done, last=False) for _ in range(3)] == [b"", done, done]
    assert stream.feed(b"", last=True) == done


def test_an_array_whose_only_element_was_not_told_is_opened_by_its_error(wires):
    element = wires["array"].frames[1].lstrip(b"\n,\r")
    asked = iter([False, True])
    stream = streaming(GEMINI, Framing.JSON_ARRAY, frame=lambda frame: fail() if next(asked) else (frame,))
    assert stream.feed(b"[" + element, last=False) == b""
    with pytest.raises(interception.Broken) as caught:
        stream.feed(b",\n" + element + b"\n]", last=True)
    assert json.loads(caught.value.rest)[0]["error"]["code"] == 500


def test_names_are_told_apart(catalog):
    twins = [Hook("twin"), Hook("twin")]
    with pytest.raises(ValueError, match="two interceptors are named twin"):
        Gateway(interceptors=twins)
    with pytest.raises(ValueError, match="two interceptors are named twin"):
        Planning(None, catalog=catalog(CHAT), interceptors=twins)
