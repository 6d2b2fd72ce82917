"""Is a file written whole or left as it was, and what is no plain file never replaced?"""

import os
import threading
from pathlib import Path

import pytest

from swizzle_sim.base.atomic_write import write_whole
from xcd_model.errors import RunError


def test_a_file_is_new_or_as_it_was(tmp_path):
    path = tmp_path / "best.txt"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(RunError, match="cannot be written"):
        write_whole(tmp_path / "none" / "best.txt", b"three")
    with pytest.raises(RunError, match="cannot be written"):
        write_whole(tmp_path, b"three")


def test_a_link_and_a_pipe_are_written_to_and_stay(tmp_path):
    """As root a rename took the place of /dev/full."""
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"")
    link.symlink_to(target)
    write_whole(link, b"through")
    assert link.is_symlink() and target.read_bytes() == b"through"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"read")
    reader.join()
    assert found == [b"read"] and pipe.is_fifo()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_a_full_device_is_an_error_and_stays():
    with pytest.raises(RunError, match="No space left"):
        write_whole(Path("/dev/full"), b"x")
    assert not os.path.isfile("/dev/full")
