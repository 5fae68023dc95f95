"""Asks a running gateway's real model through the official SDKs, streamed and not, on three surfaces. Fails when an answer is missing."""

from __future__ import annotations

import sys

import anthropic
import openai

BASE = sys.argv[1]
ASK = [{"role": "user", "content": "Name a colour."}]


def main() -> None:
    """Six answers."""
    oai = openai.OpenAI(base_url=f"{BASE}/v1", api_key="none", timeout=300)
    ant = anthropic.Anthropic(base_url=BASE, api_key="none", timeout=300)
    answers = {
        "chat": oai.chat.completions.create(model="local", messages=ASK, max_tokens=12, temperature=0).choices[0].message.content,
        "chat streamed": "".join(
            choice.delta.content or ""
            for chunk in oai.chat.completions.create(model="local", messages=ASK, max_tokens=12, temperature=0, stream=True)
            for choice in chunk.choices
        ),
        "responses": oai.responses.create(model="local", input="Name a colour.", max_output_tokens=16, temperature=0).output_text,
        "responses streamed": "".join(
            event.delta
            for event in oai.responses.create(model="local", input="Name a colour.", max_output_tokens=16, temperature=0, stream=True)
            if event.type == "response.output_text.delta"
        ),
        "messages": "".join(
            block.text
            for block in ant.messages.create(model="local", max_tokens=12, extra_body={"temperature": 0}, messages=ASK).content
            if block.type == "text"
        ),
        "messages streamed": "".join(
            event.delta.text
            for event in ant.messages.create(model="local", max_tokens=12, extra_body={"temperature": 0}, messages=ASK, stream=True)
            if event.type == "content_block_delta" and event.delta.type == "text_delta"
        ),
    }
    for name, text in answers.items():
        print(f"{name:20} {text!r}")
    if not all(answers.values()):
        sys.exit("an answer is missing")


if __name__ == "__main__":
    main()
