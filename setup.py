"""Packages of the wheel: `agent` and `benchmarks` are installed under names of this project, so that none clashes.

A project with a folder ``benchmarks`` or ``agent`` of its own still imports ours. Everything else is in setup.cfg,
which cannot rename packages that it finds.
"""

from setuptools import find_packages, setup

FOLDERS = {"swizzle_agent": "agent", "swizzle_benchmarks": "benchmarks"}


def packages() -> list[str]:
    """Installed names of all packages."""
    found = find_packages(include=["swizzle_sim*", "xcd_model*"])
    for name, folder in FOLDERS.items():
        found += [name, *(f"{name}.{inner}" for inner in find_packages(folder))]
    return found


if __name__ == "__main__":
    setup(packages=packages(), package_dir=FOLDERS)
