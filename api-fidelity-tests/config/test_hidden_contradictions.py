"""Contradictions that stand in unusual places: a secret wherever it may be written, and one path under two spellings."""

from __future__ import annotations

import pytest

from asgi_surface.catalog import inspect

KEY = "sk-proj-0123456789abcdefABCD"
CHAT = '[[routes.api_bindings]]\nsurface = "openai-chat-completions"\npath = "/x"\n'
RESPONSES = '[[routes.api_bindings]]\nsurface = "openai-responses"\npath = "/x/"\n'
FILE = """
[auth]
mode = "host"
[providers.up]
base_url = "http://up.example{base}"
{provider}
[[routes]]
route_id = "r"
upstream_model = "m"
provider = "up"
{bindings}
"""


def problems(base="", provider="", bindings=CHAT):
    return [(one.path, one.message) for one in inspect(FILE.format(base=base, provider=provider, bindings=bindings))[1]]


def test_the_file_itself_is_fine():
    assert problems() == []


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ({"base": f"/{KEY}"}, "providers.up.base_url"),
        ({"provider": f'auth = {{ header = "authorization", scheme = "{KEY}", env = "UP" }}'}, "providers.up.auth.scheme"),
        ({"provider": f'query = {{ code = "{KEY}" }}'}, "providers.up.query.code"),
        ({"bindings": f'{CHAT}query = {{ code = "{KEY}" }}\n'}, "routes[0].api_bindings[0].query.code"),
    ],
)
def test_a_secret_is_found_wherever_it_is_written_and_never_repeated(written, place):
    found = problems(**written)
    assert found == [(place, "a secret does not belong in the file")]


def test_one_path_under_two_spellings_has_one_surface():
    assert problems(bindings=CHAT + RESPONSES) == [("routes[0].api_bindings[1].path", '"up" speaks openai-chat-completions at this path already')]
