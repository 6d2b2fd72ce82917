"""Evidence: pages, figures and tables that scripts write; not in the wheel."""
