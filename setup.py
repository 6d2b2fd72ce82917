"""Packages of the wheel: `agent` and `benchmarks` are installed under names of this project, so that none clashes.

A project with a folder ``benchmarks`` or ``agent`` of its own still imports ours. Of ``benchmarks`` the wheel has the
suite's kernels; evidence, validation and laboratory stay in the repository. Everything else is in setup.cfg, which
cannot rename packages that it finds.
"""

from setuptools import find_packages, setup

FOLDERS = {"swizzle_agent": "agent", "swizzle_benchmarks": "benchmarks"}


def packages() -> list[str]:
    """Installed names of all packages."""
    own = find_packages(include=["swizzle_sim*", "xcd_model*"])
    return [*own, *FOLDERS, "swizzle_benchmarks.suite"]


if __name__ == "__main__":
    setup(packages=packages(), package_dir=FOLDERS)
