"""Does the runner notice what it is there to notice?"""

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from swizzle_benchmarks.evidence.docs.notebooks import complaints, executed, notebooks, shown, tidied


def notebook(*sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells, metadata={"editor": "mine"})


def test_errors_stop_it_and_warnings_are_found():
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        executed(notebook("1 / 0"))
    found = executed(notebook("import warnings, os, sys\nprint(1)\nprint(2)", "warnings.warn('old')", "os.listdir()"))
    assert shown(found)[0][1] == "1\n2" and shown(found)[2][1] == "[]"
    assert len(complaints(found)) == 1 and "old" in complaints(found)[0]
    assert "editor" not in found.metadata


def test_streams_are_joined_and_the_original_is_left_alone():
    streams = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("a", "b")]
    one = notebook("x")
    one.cells[0].outputs = streams
    assert [out.text for out in tidied(one).cells[0].outputs] == ["ab"]


def test_notebooks_are_chosen_by_their_numbers():
    assert [path.name[:2] for path in notebooks(["02", "05"])] == ["02", "05"]
