"""The fixture of typed commands, as the tests of the command line have it."""

from tests.cli.conftest import *  # noqa: F403
