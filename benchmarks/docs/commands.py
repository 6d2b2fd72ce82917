"""``docs/cli.md``: every command with its arguments, options and examples, from the commands themselves."""

from __future__ import annotations

import re
from typing import Any

from typer import Context
from typer.main import get_command

from swizzle_sim.cli.app import app
from swizzle_sim.cli.help import EXAMPLES, FIRST, TASKS


def with_bars(cell: str) -> str:
    """Cell whose bars do not end it, in code too; GitHub and Python-Markdown agree on entities alone."""
    in_code = re.sub(r"`([^`]*\|[^`]*)`", lambda found: f"<code>{_escaped(found[1])}</code>", cell)
    return in_code.replace("|", "&#124;")


def _escaped(code: str) -> str:
    return code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


INTRO = """\
# Commands

Generated from the commands by `python -m benchmarks.docs.regenerate`; `swizzle-sim COMMAND --help` says the same.

Exit status: 0; 1 for a negative verdict, such as what is no bijection; 2 for misuse; 130 for Ctrl-C. Results go to
stdout, progress and remarks to stderr. `--json` prints one document on stdout ([keys](json.md)). Nothing is coloured
into a pipe, or with `NO_COLOR` or `TERM=dumb` set. `swizzle-sim --install-completion` teaches the shell kernels, GPUs,
families and run folders.
"""


def commands_markdown() -> str:
    """Text of ``docs/cli.md``."""
    group: Any = get_command(app)
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    parts = [INTRO, _block(FIRST), "| task | commands |\n| --- | --- |\n" + _index(shown)]
    for task, names in TASKS.items():
        parts.append(f"## {task}\n")
        parts += [_command(name, shown[name]) for name in names if name in shown]
    return "\n".join(parts)


def _index(shown: dict[str, Any]) -> str:
    lines = []
    for task, names in TASKS.items():
        links = "<br>".join(f"[`{name}`](#{name}): {_in_short(shown[name])}" for name in names if name in shown)
        lines.append(f"| {task} | {links} |\n")
    return "".join(lines)


def _in_short(command: Any) -> str:
    """First sentence of a command's help, up to its semicolon, or the colon of a list."""
    text = re.split(r"(?<=[^.])\.(?: |$)", " ".join((command.help or "").split()))[0]
    return re.split(r"; |(?<=.{25}): ", text)[0]


def _command(name: str, command: Any) -> str:
    usage = " ".join(["swizzle-sim", name, *command.collect_usage_pieces(Context(command))])
    parts = [f"### {name}\n", " ".join(command.help.split()) + "\n", f"```text\n{usage}\n```\n"]
    rows = [_row(param) for param in command.params if not param.hidden]
    rows.sort(key=lambda row: row[0])  # arguments, options of all, then those of one proposer
    if rows:
        parts.append("| name | what it is | default |\n| --- | --- | --- |\n" + "".join(row[1] for row in rows))
    if name in EXAMPLES:
        parts.append(_block(EXAMPLES[name]))
    return "\n".join(parts)


def _row(param: Any) -> tuple[tuple[bool, str], str]:
    argument = param.param_type_name == "argument"
    panel = param.rich_help_panel or ""
    if argument:
        spelled = f"`{param.metavar or param.name.upper()}`"
    else:
        spelled = ", ".join(f"`{word}`" for word in [*param.opts, *param.secondary_opts])
        spelled += f" `{param.metavar}`" if param.metavar and not param.is_flag else ""
    text = f"{panel.removeprefix('Options of ')}: {param.help}" if panel else param.help or ""
    default = "required" if param.required else _default(param)
    cells = [spelled, text, default]
    return (not argument, panel), "| " + " | ".join(with_bars(cell) for cell in cells) + " |\n"


def _default(param: Any) -> str:
    value = param.default
    if value is None or value is False or value == "":
        return ""
    return f"`{value}`" if value is not True else "on"


def _block(examples: Any) -> str:
    width = max(len(command) for command, _ in examples)
    lines = [f"    {command:{width}}  # {what}" if what else f"    {command}" for command, what in examples]
    return "\n".join(line.rstrip() for line in lines) + "\n"
