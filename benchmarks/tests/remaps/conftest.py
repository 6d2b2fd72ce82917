"""Source files of tests."""

from tests.testing.conftest import written  # noqa: F401
