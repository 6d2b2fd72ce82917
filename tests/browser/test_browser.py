"""Does the browser of these tests see what it should, and complain when it should?"""

from __future__ import annotations


def test_a_page_is_drawn_and_its_script_runs(page):
    page.set_content("<h1>old</h1><script>document.querySelector('h1').textContent = 'new'</script>")
    assert page.inner_text("h1") == "new"


def test_errors_of_a_page_are_heard(page):
    page.set_content("<script>console.error('lost'); throw new Error('thrown')</script>")
    assert "lost" in page.complaints and "thrown" in " ".join(page.complaints)
    page.complaints.clear()


def test_nothing_outside_this_machine_is_asked(page):
    page.set_content("<img src='https://example.org/x.png' onerror='document.title = \"refused\"'>")
    page.wait_for_function("document.title === 'refused'")
    page.complaints.clear()
