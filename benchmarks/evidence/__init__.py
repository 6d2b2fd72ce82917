"""Evidence: pages, figures and tables that scripts write; not in the wheel."""

from pathlib import Path

PAGES = Path(__file__).parent / "pages"
