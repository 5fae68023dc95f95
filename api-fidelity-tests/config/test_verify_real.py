"""`asgi-surface verify` against the real llama.cpp, under a file that declares more than it does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from asgi_surface import cli
from asgi_surface.upstream.llama import Llama

pytestmark = pytest.mark.skipif(Llama().unavailable() is not None, reason=str(Llama().unavailable()))

ROUTES = """
[auth]
mode = "loopback"
[providers.local]
embedded = "llama-cpp"
[[routes]]
route_id = "local"
upstream_model = "smollm2-135m-instruct"
provider = "local"
[[routes.api_bindings]]
surface = "openai-chat-completions"
path = "/v1/chat/completions"
features = ["streaming", "tools", "images", "structured-output", "logprobs"]
[[routes.api_bindings]]
surface = "anthropic-messages"
path = "/v1/messages"
features = ["tools", "images", "count-tokens"]
"""

# The model's own chat template knows no tools, so llama.cpp leaves them out, one that is forced too; and it sees nothing.
SAID = """\
local/openai-chat-completions
  text                    holds
  streaming               holds
  tools                   does not hold: no call came
  images                  does not hold: upstream_error, upstream status 500
  structured-output       holds
  logprobs                holds
  features = ["streaming", "structured-output", "logprobs"]
local/anthropic-messages
  text                    holds
  tools                   does not hold: no call came
  images                  does not hold: upstream_error, upstream status 500
  count-tokens            holds
  streaming               holds, and could be declared too
  features = ["count-tokens"]
"""


def test_the_truth_is_told_about_a_real_model(tmp_path, capsys):
    file = tmp_path / "routes.toml"
    file.write_text(ROUTES)
    with ThreadPoolExecutor(1) as thread:
        status = thread.submit(cli.main, ["verify", str(file), "--timeout", "300"]).result()
    assert (status, capsys.readouterr().out) == (1, SAID)
