"""Names and texts that a terminal would obey, and secrets that nobody should see."""

import pytest

from swizzle_agent.settings import Settings
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.app import _complain
from swizzle_sim.cli.output import console, say, table
from swizzle_sim.language import Swizzle
from swizzle_sim.language.grid import Grid
from xcd_model.errors import LanguageError, ModelError

OBEYED = "\x1b]0;owned\x07 \x1b[2J \u202e \u2066 \x9b31m \r"
SECRET = "unlikely-4711-secret"


def clean(text):
    return all(c.isprintable() or c in "\n\t" for c in text)


@pytest.mark.parametrize("text", [f"pid = pid # {OBEYED}\nx = y + M", f"pid = {OBEYED}", f"pid = lost # {OBEYED}"])
def test_errors_of_the_language_are_clean_before_and_after_parsing(text):
    with pytest.raises(LanguageError) as caught:
        Swizzle.parse(text, filename=f"{OBEYED}.txt").verify(Grid((8,)), 8)
    assert clean(str(caught.value)), repr(str(caught.value))


def test_what_is_printed_is_clean(capsys):
    console().print(OBEYED, markup=False)
    table(OBEYED, [OBEYED], [[OBEYED]], note=OBEYED)
    say(OBEYED)
    _complain("code", OBEYED, status=2)
    with Progress(OBEYED) as progress:
        progress._logged_s = -100.0
        progress(1, 2, note=OBEYED)
        progress.say(OBEYED)
    out, err = capsys.readouterr()
    assert clean(out) and clean(err) and "owned" in out and "owned" in err


@pytest.mark.parametrize(
    "base",
    [
        f"https://me:{SECRET}@host/v1",
        f"https://{SECRET}@host/v1",
        f"https://host/v1?api_key={SECRET}",
        f"https://host/v1?x=1&access_token={SECRET}",
        f"https://host/v1#key={SECRET}",
        f"http://[{SECRET}/v1",
    ],
)
def test_an_address_with_a_secret_is_refused_before_anything_is_stored(base):
    with pytest.raises(ModelError) as caught:
        Settings(models=("openai/x",), api_base=base)
    assert SECRET not in str(caught.value)
    Settings(models=("openai/x",), api_base="http://localhost:8000/v1?api-version=2024-10-21")
