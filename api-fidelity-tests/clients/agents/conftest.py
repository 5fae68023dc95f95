"""Where real agents work: a served gateway, and behind it, over real sockets, an upstream of four surfaces that plays a loop of two turns.

First it calls the client's own shell tool, whatever that is called there; it says FINAL only to what the command printed, given back as the result of
that call. It seals what it thought where its surface has seals, and keeps whether they came back; what comes back altered is a complaint. Clients are
processes with a home of their own; what they are told comes from `asgi-surface connect`. The package is not used to read or write any wire here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from asgi_surface import Gateway, cli
from asgi_surface.profiles import PROFILES
from asgi_surface.surfaces import CHAT, GEMINI, MESSAGES, RESPONSES

ROOT = Path(__file__).resolve().parents[3]
CLIENTS = Path(os.environ.get("ASGI_SURFACE_CLIENTS") or ROOT / ".clients").resolve()
UPSTREAMS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "gemini": GEMINI}
RESULTS = Path(__file__).with_name("results.json")
SHORT = {surface: short for short, surface in UPSTREAMS.items()}
# What it prints stands nowhere in what is asked. Qwen Code can lose the output of a command that ends at once.
SHELL = "printf 'tool-ran-%d\\n' 42; sleep 0.5"
PRINTED, FINAL = "tool-ran-42", "FINAL: tool-ran-42"
SEAL = "Zm9vLWJhcg+/" * 9 + "=="
# What Google documents for a call that another model made: it proves nothing, and is no seal.
STAND_IN = "skip_thought_signature_validator"
THOUGHT = "One command will tell."
# The client's own shell, by the last part of its name: `bash`, `functions.exec_command`, `ns__shell`.
NAMES = ["bash", "exec_command", "shell_command", "run_shell_command", "shell", "local_shell", "exec"]


class Tool(NamedTuple):
    """A tool that a client offers; `kind` is function or custom."""

    name: str
    schema: dict[str, Any]
    kind: str = "function"
    namespace: str | None = None


class Asked(NamedTuple):
    """What one request holds: tools, the model's own calls by id, the results since its last turn, and the seals of its thoughts."""

    tools: list[Tool]
    calls: dict[str, str]
    results: list[tuple[str, str]]
    seals: list[str]
    schema: dict[str, Any] | None = None
    sealing: bool = False


class Said(NamedTuple):
    """What the upstream says: a text, or one call."""

    text: str = ""
    tool: Tool | None = None
    arguments: Any = None


def flat(value: Any) -> str:
    """Every text within a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return (value if isinstance(value, str) else "") if inner is None else " ".join(map(flat, inner))


def filled(name: str, schema: dict[str, Any]) -> Any:
    """A value that a tool takes; what is called a command is the command."""
    kind = str((schema.get("type") or ["string"])[0] if isinstance(schema.get("type"), list) else schema.get("type", "string")).lower()
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        members = schema.get("properties", {})
        return {one: filled(one, members[one]) for one in members if one in schema.get("required", ()) or one in ("command", "cmd")}
    if kind == "array":
        return ["bash", "-lc", SHELL] if name in ("command", "cmd") else []
    return {"string": SHELL if name in ("command", "cmd", "script", "input") else "x", "boolean": False}.get(kind, 1)


def shell(tools: list[Tool]) -> Tool | None:
    last = {re.split(r"[.:]|__", tool.name.lower())[-1]: tool for tool in reversed(tools)}
    return next((last[name] for name in NAMES if name in last), None)


def script(tool: Tool) -> str:
    """What a freeform tool is given: Codex's `exec` runs JavaScript that runs commands."""
    if not tool.name.endswith("exec"):
        return SHELL
    return f"const r = await tools.exec_command({{cmd: {json.dumps(SHELL)}}}); text(r.output ?? JSON.stringify(r));"


def decided(asked: Asked) -> Said:
    tool = shell(asked.tools)
    if asked.results:
        told = " ".join(text for _, text in asked.results)
        return Said(f"{FINAL} [done]" if PRINTED in told else "The command printed something else.")
    tool = tool or (asked.tools[0] if len(asked.tools) == 1 else None)  # one tool is a shape to fill
    if tool:
        freeform = tool.kind == "custom" or [*tool.schema.get("properties", {})] == ["input"]
        arguments = script(tool) if freeform else filled("", {"type": "object"} | tool.schema)
        return Said(tool=tool, arguments={"input": arguments} if freeform and tool.kind == "function" else arguments)
    if asked.schema:
        return Said(json.dumps(filled("", asked.schema)))
    return Said("Hello from the upstream.")


def sse(events, *, named=False) -> bytes:
    return b"".join((f"event: {one['type']}\n" if named else "").encode() + f"data: {json.dumps(one)}\n\n".encode() for one in events)


def halves(text):
    return [piece for piece in (text[: len(text) // 2], text[len(text) // 2 :]) if piece]


# One wire a surface: `read` makes `Asked` of a body, `answer` makes bytes of `Said`.


class Chat:
    CALL = "call_agent1"
    usage: ClassVar[dict[str, Any]] = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    usage |= {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}
    head: ClassVar[dict[str, Any]] = {"id": "chatcmpl-1", "created": 1, "model": "up"}

    def read(self, body):
        tools = [Tool(one[kind]["name"], one[kind].get("parameters", {}), kind) for one in body.get("tools", ()) for kind in [one["type"]]]
        messages = body["messages"]
        last = max((at for at, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
        calls = {call["id"]: call[call["type"]]["name"] for one in messages for call in one.get("tool_calls") or ()}
        results = [(one["tool_call_id"], flat(one["content"])) for one in messages[last + 1 :] if one["role"] == "tool"]
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        return Asked(tools, calls, results, [], schema)

    def answer(self, said, body, asked):
        tool, end = said.tool, "tool_calls" if said.tool else "stop"
        text = said.arguments if tool and tool.kind == "custom" else json.dumps(said.arguments)
        inner = {"custom": {"name": "", "input": ""}, "function": {"name": "", "arguments": ""}}
        call = tool and {"id": self.CALL, "type": tool.kind, tool.kind: dict(zip(inner[tool.kind], (tool.name, text), strict=True))}
        if not body.get("stream"):
            message = {"role": "assistant", "content": said.text or None, "refusal": None} | ({"tool_calls": [call]} if call else {})
            choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": end}]
            return json.dumps(self.head | {"object": "chat.completion", "choices": choices, "usage": self.usage}).encode()
        deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in halves(said.text))]
        if tool and call:
            field = [*inner[tool.kind]][1]
            begun = {"index": 0} | call | {tool.kind: call[tool.kind] | {field: ""}}
            deltas += [{"tool_calls": [one]} for one in (begun, *({"index": 0, tool.kind: {field: piece}} for piece in halves(text)))]
        chunks = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        chunks.append([{"index": 0, "delta": {}, "finish_reason": end}])
        head = self.head | {"object": "chat.completion.chunk"}
        return sse([*(head | {"choices": one} for one in chunks), head | {"choices": [], "usage": self.usage}]) + b"data: [DONE]\n\n"


class Responses:
    CALL = "call_agent2"
    usage: ClassVar[dict[str, Any]] = {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 7, "total_tokens": 12}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    head: ClassVar[dict[str, Any]] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "up",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "usage": None,
    }
    head |= {"metadata": {}, "temperature": 1.0, "top_p": 1.0, "truncation": "disabled", "presence_penalty": 0.0, "frequency_penalty": 0.0}
    head |= {"text": {"format": {"type": "text"}}, "top_logprobs": 0, "service_tier": "default"}
    head |= {"store": False, "background": False} | dict.fromkeys(("error", "incomplete_details", "instructions", "completed_at", "max_tool_calls"))
    head |= dict.fromkeys(("previous_response_id", "max_output_tokens", "safety_identifier", "prompt_cache_key"))

    def read(self, body):
        items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
        offered = [*body.get("tools", ()), *(tool for one in items if one.get("type") == "additional_tools" for tool in one["tools"])]
        last = max(
            (at for at, one in enumerate(items) if one.get("type", "").endswith(("_call", "reasoning")) or one.get("role") == "assistant"), default=-1
        )
        calls = {one["call_id"]: one.get("name", "") for one in items if one.get("type", "").endswith("_call") and "call_id" in one}
        results = [(one["call_id"], flat(one["output"])) for one in items[last + 1 :] if one.get("type", "").endswith("_output")]
        seals = [one["encrypted_content"] for one in items if one.get("type") == "reasoning" and one.get("encrypted_content")]
        schema = ((body.get("text") or {}).get("format") or {}).get("schema")
        sealing = "reasoning.encrypted_content" in (body.get("include") or ())
        return Asked([*self.tools(offered)], calls, results, seals, schema, sealing)

    def tools(self, offered, namespace=None):
        for one in offered:
            if one["type"] == "namespace":
                yield from self.tools(one["tools"], one["name"])
            elif one["type"] in ("function", "custom"):
                yield Tool(one["name"], one.get("parameters") or {}, one["type"], namespace)

    def items(self, said, asked):
        if asked.sealing:
            yield {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": SEAL}
        tool = said.tool
        if tool is None:
            part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
            yield {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
            return
        place = {"namespace": tool.namespace} if tool.namespace else {}
        head = {"id": "fc_1", "status": "completed", "call_id": self.CALL, "name": tool.name, **place}
        custom = {"type": "custom_tool_call", "input": said.arguments}
        yield head | (custom if tool.kind == "custom" else {"type": "function_call", "arguments": json.dumps(said.arguments)})

    def answer(self, said, body, asked):
        items = [*self.items(said, asked)]
        tools = [{"strict": True, "description": None} | one for one in body.get("tools") or []]
        head = self.head | {"tools": tools, "reasoning": {"effort": None, "summary": None} | (body.get("reasoning") or {})}
        whole = head | {"status": "completed", "output": items, "usage": self.usage, "completed_at": 2}
        if not body.get("stream"):
            return json.dumps(whole).encode()
        events = [{"type": "response.created", "response": head | {"status": "in_progress", "output": []}}]
        for index, item in enumerate(items):
            events += [{"output_index": index} | one for one in self.told(item)]
        events.append({"type": "response.completed", "response": whole})
        return sse([one | {"sequence_number": number} for number, one in enumerate(events)], named=True)

    def told(self, item):
        empty = {"content": [], "arguments": "", "input": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "item": item | {name: one for name, one in empty.items() if name in item}}
        at = {"item_id": item["id"]}
        for part in item.get("content", ()):
            place = at | {"content_index": 0}
            yield {"type": "response.content_part.added", **place, "part": part | {"text": ""}}
            yield from ({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in halves(part["text"]))
            yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **place, "part": part}
        for name, kind in (("arguments", "function_call_arguments"), ("input", "custom_tool_call_input")):
            if name in item:
                yield from ({"type": f"response.{kind}.delta", **at, "delta": piece} for piece in halves(item[name]))
                yield {"type": f"response.{kind}.done", **at, name: item[name]}
        yield {"type": "response.output_item.done", "item": item}


class Messages:
    CALL = "toolu_agent3"
    usage: ClassVar[dict[str, Any]] = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "service_tier": "standard",
    }
    usage |= {"cache_creation": None, "inference_geo": None, "output_tokens_details": {"thinking_tokens": 0}}

    def read(self, body):
        tools = [Tool(one["name"], one["input_schema"]) for one in body.get("tools", ()) if "input_schema" in one]
        messages = body["messages"]
        blocks = [(at, one) for at, message in enumerate(messages) if isinstance(message["content"], list) for one in message["content"]]
        last = max((at for at, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
        calls = {one["id"]: one["name"] for _, one in blocks if one["type"] == "tool_use"}
        results = [(one["tool_use_id"], flat(one.get("content"))) for at, one in blocks if one["type"] == "tool_result" and at > last]
        seals = [one["signature"] for _, one in blocks if one["type"] == "thinking"]
        sealing = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        return Asked(tools, calls, results, seals, (body.get("output_config") or {}).get("format", {}).get("schema"), sealing)

    def blocks(self, said, asked):
        if asked.sealing:
            yield {"type": "thinking", "thinking": THOUGHT, "signature": SEAL}
        yield (
            {"type": "tool_use", "id": self.CALL, "name": said.tool.name, "input": said.arguments}
            if said.tool
            else {"type": "text", "text": said.text}
        )

    def answer(self, said, body, asked):
        end = {"stop_reason": "tool_use" if said.tool else "end_turn", "stop_sequence": None}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "usage": self.usage}
        if not body.get("stream"):
            return json.dumps(head | {"content": [*self.blocks(said, asked)]} | end).encode()
        events = [{"type": "message_start", "message": head | {"content": [], "stop_reason": None, "stop_sequence": None}}]
        for index, block in enumerate(self.blocks(said, asked)):
            events += [{"index": index} | one for one in self.told(block)]
        return sse([*events, {"type": "message_delta", "delta": end, "usage": {"output_tokens": 7}}, {"type": "message_stop"}], named=True)

    def told(self, block):
        empty = {"thinking": "", "signature": "", "text": "", "input": {}}
        yield {"type": "content_block_start", "content_block": block | {name: one for name, one in empty.items() if name in block}}
        deltas = {"thinking": ("thinking_delta", "thinking"), "text": ("text_delta", "text"), "input": ("input_json_delta", "partial_json")}
        for name, (kind, member) in deltas.items():
            text = block.get(name, "") if name != "input" or name not in block else json.dumps(block[name])
            yield from ({"type": "content_block_delta", "delta": {"type": kind, member: piece}} for piece in halves(text))
        if "signature" in block:
            yield {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": SEAL}}
        yield {"type": "content_block_stop"}


class Gemini:
    CALL = "agent4"
    usage: ClassVar[dict[str, Any]] = {
        "promptTokenCount": 5,
        "candidatesTokenCount": 7,
        "totalTokenCount": 12,
        "thoughtsTokenCount": 0,
        "cachedContentTokenCount": 0,
    }

    def read(self, body):
        offered = [one for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
        tools = [Tool(one["name"], one.get("parametersJsonSchema") or one.get("parameters") or {}) for one in offered]
        contents = body["contents"]
        last = max((at for at, one in enumerate(contents) if one.get("role") == "model"), default=-1)
        parts = [(at, part) for at, one in enumerate(contents) for part in one.get("parts", ())]
        calls = {one.get("id", one["name"]): one["name"] for _, part in parts for one in [part.get("functionCall")] if one}
        given = [part["functionResponse"] for at, part in parts if at > last and "functionResponse" in part]
        results = [(one.get("id", one["name"]), flat(one["response"])) for one in given]
        seals = [part["thoughtSignature"] for _, part in parts if part.get("thoughtSignature", STAND_IN) != STAND_IN]
        settings = body.get("generationConfig") or {}
        return Asked(tools, calls, results, seals, settings.get("responseJsonSchema") or settings.get("responseSchema"), sealing=True)

    def answer(self, said, body, asked):
        call = said.tool and {"functionCall": {"id": self.CALL, "name": said.tool.name, "args": said.arguments}, "thoughtSignature": SEAL}
        parts = [call] if call else [{"text": piece} for piece in halves(said.text)]
        chunks = [[part] for part in parts] if body["stream"] else [parts]
        told = [
            {"candidates": [{"index": 0, "content": {"role": "model", "parts": one}} | ({"finishReason": "STOP"} if one is chunks[-1] else {})]}
            | {"modelVersion": "up", "responseId": "r1", "usageMetadata": self.usage}
            for one in chunks
        ]
        return sse(told) if body["stream"] else json.dumps(told[0]).encode()


WIRES = {CHAT: Chat(), RESPONSES: Responses(), MESSAGES: Messages(), GEMINI: Gemini()}
PATHS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES}
HISTORY = {CHAT: "messages", RESPONSES: "input", MESSAGES: "messages", GEMINI: "contents"}
COUNTS = {"/v1/messages/count_tokens": {"input_tokens": 5}, "/v1beta/models/up:countTokens": {"totalTokens": 5}}


class Upstream:
    """The scripted upstream as an ASGI app. `seals` says of each second turn whether what it sealed came back."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.turns: list[Asked] = []

    async def __call__(self, scope, receive, send) -> None:
        read, more = b"", True
        while more:
            message = await receive()
            read, more = read + message.get("body", b""), message.get("more_body", False)
        path, body = scope["path"], json.loads(read)
        surface = PATHS.get(path, GEMINI)
        if surface == GEMINI:
            body["stream"] = path.endswith(":streamGenerateContent")
        if path in COUNTS:
            status, told = 200, json.dumps(COUNTS[path]).encode()
        elif not body.get(HISTORY[surface]):
            status, told = 400, json.dumps({"error": {"message": "nothing is asked"}}).encode()
        else:
            asked = WIRES[surface].read(body)
            self.turns.append(asked)
            self.complaints += self.wrong(asked, body)
            status, told = 200, WIRES[surface].answer(decided(asked), body, asked)
        media = b"text/event-stream" if status == 200 and body.get("stream") else b"application/json"
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", media)]})
        await send({"type": "http.response.body", "body": told})

    def wrong(self, asked, body):
        yield from (f"the result of a call that nobody made: {one}" for one, _ in asked.results if one not in asked.calls)
        if "budget_tokens" in (body.get("thinking") or {}) and asked.results and not asked.seals:
            yield "a budget for thought where the loop began without one: Anthropic answers 400"
        yield from (f"a seal that is another: {seal[:40]}" for seal in asked.seals if seal != SEAL)

    def ids(self) -> str:
        """Whether the calls came back under the ids that they were made with: Gemini's clients may leave them out."""
        known = {wire.CALL for wire in WIRES.values()}
        return "kept" if all(known >= turn.calls.keys() for turn in self.turns) else "not kept"

    def sealed(self) -> str:
        """Whether the seals came back with the results: `kept`, `not kept`, or `-` where nothing was sealed."""
        second = [turn for turn in self.turns if turn.results]
        if not any(turn.sealing for turn in second):
            return "-"
        return "kept" if all(turn.seals for turn in second) else "not kept"


USUAL = ["streaming", "tools", "parallel-tools", "reasoning", "images", "structured-output"]
SEALED = [*USUAL, "encrypted-reasoning", "files"]
FEATURES = {
    CHAT: [*USUAL, "mid-conversation-system"],
    RESPONSES: [*SEALED, "custom-tools", "mid-conversation-system"],
    MESSAGES: [*SEALED, "prompt-cache", "count-tokens", "mid-conversation-system"],
    GEMINI: [*SEALED, "count-tokens"],
}
BINDING = {**{surface: path for path, surface in PATHS.items()}, GEMINI: "/v1beta/models/{model}:{method}"}


def routes(url: str) -> str:
    """One route for each profile and kind of upstream; `plain` has none, and names by which llm-comply knows what a model can."""
    lines = [f'[auth]\nmode = "loopback"\n[providers.up]\nbase_url = "{url}"']
    for profile in ("plain", *PROFILES):
        for short, surface in UPSTREAMS.items():
            name = f"{profile}-on-{short}"
            models = [name] if profile in PROFILES else [name, f"gpt-5-on-{short}", f"claude-sonnet-4-6-on-{short}"]
            lines.append(f'[[routes]]\nroute_id = "{name}"\nmodels = {json.dumps(models)}\nupstream_model = "up"\nprovider = "up"')
            lines.append(f"profiles = {json.dumps([profile] if profile in PROFILES else [])}")
            lines.append(f'[[routes.api_bindings]]\nsurface = "{surface}"\npath = "{BINDING[surface]}"\nfeatures = {json.dumps(FEATURES[surface])}')
    return "\n".join(lines) + "\n"


class Ran(NamedTuple):
    """A client's process at its end."""

    status: int
    out: str
    err: str


class Bench:
    """A gateway in front of the scripted upstream; `run` has a client work through it."""

    def __init__(self, gate, behind, folder: Path) -> None:
        self.outcomes: list[Any] = []
        self.url, self._gate, self._behind = gate.url, gate, behind
        self.file = folder / "routes.toml"
        self.file.write_text(routes(behind.url))
        gate.app = Gateway(routes=self.file, record=self.outcomes.append)
        self.renew()

    def renew(self) -> Upstream:
        """A new upstream, without a past."""
        self.outcomes.clear()
        self.upstream = self._behind.app = Upstream()
        return self.upstream

    def told(self, capsys, client: str, surface: str, model: str) -> dict[str, Any]:
        """What `asgi-surface connect` tells a client."""
        options = ["--surface", surface, "--model", model, "--url", self._gate.url, "--json"]
        assert cli.main(["connect", client, str(self.file), *options]) == 0
        return json.loads(capsys.readouterr().out)

    def dropped(self, model: str) -> list[str]:
        """What the gateway reported as left out for a model's clients, numbers of places aside."""
        return sorted({re.sub(r"/\d+", "/*", one) for outcome in self.outcomes if outcome.model == model for one in outcome.dropped})

    def refused(self) -> list[str]:
        """What the gateway refused, with the place."""
        return sorted({f"{outcome.code} at {re.sub(r'/[0-9]+', '/*', outcome.pointer or '')}" for outcome in self.outcomes if outcome.code})


@pytest.fixture(scope="session")
def installed() -> Path:
    """The folder of the clients. Skips where there is none."""
    if not CLIENTS.is_dir():
        pytest.skip(f"no clients in {CLIENTS.name}: .ci/clients/install puts them there; ASGI_SURFACE_CLIENTS names another folder")
    return CLIENTS


@pytest.fixture
def home(tmp_path) -> Path:
    """A user's empty home, with a folder to work in."""
    (tmp_path / "home/work").mkdir(parents=True)
    (tmp_path / "home/work/README.md").write_text("hello\n")
    return tmp_path / "home"


@pytest.fixture
def launch(home, installed):
    """Runs a command as a user with only this home, and ends what is left of it."""

    def run(told: dict[str, Any], command: list[str], *, seconds: float = 120, **more: str) -> Ran:
        for name, text in told["files"].items():
            file = Path(name.replace("~", str(home), 1))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        path = os.pathsep.join([str(installed / "node_modules/.bin"), os.environ["PATH"]])
        plain = {
            "HOME": str(home),
            "TMPDIR": str(home),
            "PATH": path,
            "CI": "1",
            "NO_COLOR": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            "LANG": "C.UTF-8",
        }
        with (home / "out").open("w+") as out, (home / "err").open("w+") as err:
            process = subprocess.Popen(
                command,
                cwd=home / "work",
                env={**plain, **told["env"], **more},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                process.wait(seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return Ran(process.returncode, (home / "out").read_text(), (home / "err").read_text())

    return run


@pytest.fixture(scope="module")
def bench(server, tmp_path_factory) -> Iterator[Bench]:
    """One bench for a module's tests."""
    behind = type(server)()
    yield Bench(server, behind, tmp_path_factory.mktemp("bench"))
    behind.stop()


class Results:
    """What came of each client at each kind of upstream, as the repository has it: results.json, from which README's table is made."""

    def __init__(self, accept: bool) -> None:
        self._accept = accept
        self._known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def tell(self, part: str, row: str, column: str, found: Any) -> None:
        """Compares what was found with what is known; `--accept` makes it known."""
        known = self._known.setdefault(part, {}).setdefault(row, {})
        if self._accept:
            known[column] = found
            RESULTS.write_text(json.dumps(self._known, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        assert found == known.get(column), f"{row} on {column} is not what results.json says; --accept writes it anew"


@pytest.fixture(scope="session")
def results(request) -> Results:
    """The results that the repository has."""
    return Results(request.config.getoption("--accept"))
