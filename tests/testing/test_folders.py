"""Which files of a folder are checked?"""

import subprocess

import pytest

from swizzle_sim.testing.folders import files_under
from xcd_model.errors import OptionError

FILES = ("a.py", "build/b.py", "third_party/x/c.py", "kernels/d.py", "kernels/e.swizzle", "kernels/notes.md")
FILES += (".venv/f.py", "kernels/generated/g.py", "kernels/generated/keep.py")


@pytest.fixture
def checkout(tmp_path):
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("pid = pid\n")
    return tmp_path


def found(folder, *exclude, inside=""):
    return {str(one.relative_to(folder)) for one in files_under([folder / inside], exclude=exclude)}


def test_hidden_folders_and_other_files_are_left_out(checkout):
    assert found(checkout) == set(FILES) - {".venv/f.py", "kernels/notes.md"}


@pytest.mark.parametrize(
    "text",
    [
        "def f(wgid, n):\n    return wgid",
        "p = tl.program_id(0)",
        "bx = T.block_idx()",
        "# swizzle: off",
        "def f(a, tile_in_mn=3):",
    ],
)
def test_a_python_file_that_names_an_id_is_listed(checkout, text):
    (checkout / "a.py").write_text(text)
    (checkout / "build" / "b.py").write_text("import os\n\nrapid = os.getuid()\n")
    assert {"a.py", "build/b.py"} & found(checkout) == {"a.py"}


def test_gitignore_is_honoured_as_git_does(checkout):
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    (checkout / ".gitignore").write_text("build/\n/third_party\n*.swizzle\n")
    (checkout / "kernels" / ".gitignore").write_text("!e.swizzle\ngenerated/*\n!keep.py\n")
    words = ["git", "-C", str(checkout), "ls-files", "--others", "--exclude-standard"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    shown = {name for name in listed if name.endswith((".py", ".swizzle")) and not name.startswith(".")}
    assert found(checkout) == shown == {"a.py", "kernels/d.py", "kernels/e.swizzle", "kernels/generated/keep.py"}
    # rules of the checkout hold where a folder of it is named
    assert found(checkout, inside="kernels") == {name for name in shown if name.startswith("kernels/")}
    (checkout / "kernels" / ".gitignore").unlink()
    assert "kernels/e.swizzle" not in found(checkout, inside="kernels")
    # and a file or folder that is named itself is checked
    assert found(checkout, inside="build") == {"build/b.py"}
    assert files_under([checkout / "build" / "b.py"]) == [checkout / "build" / "b.py"]


def test_what_the_caller_excludes(checkout):
    assert found(checkout, "third_party/", "generated") == {"a.py", "build/b.py", "kernels/d.py", "kernels/e.swizzle"}
    assert found(checkout, "*", "!/a.py") == {"a.py"}
    assert found(checkout, "/kernels/*.py", inside="kernels") == found(checkout, inside="kernels")


def test_a_pattern_that_is_none(checkout):
    with pytest.raises(OptionError, match="--exclude"):
        files_under([checkout], exclude=["!"])


def test_a_loop_of_links_ends(checkout):
    (checkout / "kernels" / "again").symlink_to(checkout)
    assert len(found(checkout)) == 7
