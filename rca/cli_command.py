"""What all commands share: help in sections, and options that every one of them reads from variables alike."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Collection
from typing import Any

import click

from rca.config import SHARED

WIDTH = 80
"""Columns of everything that is printed, where the terminal is not narrower."""

COLOR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour; auto: where the output is a terminal.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress.")

_SECTIONS: tuple[tuple[str, Collection[str]], ...] = (
    ("What is written", ("output", "formats", "form", "lang", "as_json", "fail_on", "save_events", "redact", "force")),
    ("How the run is read", ("baseline", "jobs", "cluster", "strict")),
    ("Experiments", ("experiments", "budget", "limit", "device", "data", "twin")),
    ("Rules", ("rules", "disable")),
    ("The step", ("capacity", "task", "batch", "seq", "precision", "optimizer", "attention", "checkpointing",
                  "accumulation", "lora", "lora_targets", "new_tokens", "utilization")),
    ("Several cards", ("devices", "zero")),
    ("Terminal", ("quiet", "verbose", "color", "version", "help")),
)  # fmt: skip
"""Heading of the help -> names of the options that stand under it."""
_FEW = 8
"""Options that need no headings."""
_ONLY_TYPED = {"help", "version", "config", "force", "yes", "dry_run", "first_run"}
"""Options that are given for one call: neither a variable nor a file sets them."""


class Command(click.Command):
    """A command whose help has sections, examples, exit codes, variables and files."""

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None,
                     **extra: Any) -> click.Context:  # fmt: skip
        """Start a call: the variables of an option are known once the names of the command are."""
        path = [*_names(parent), info_name or ""]
        for option in self.params:
            if isinstance(option, click.Option) and can_be_set(option):
                option.envvar = variables(path, option)
        return super().make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options under their headings."""
        from rca.cli_pages import page

        found = page(_names(ctx))
        if found.arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(found.arguments)
        records = {
            "help" if "--help" in option.opts else str(option.name): record
            for option in self.get_params(ctx)
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None
        }
        sections = _SECTIONS if len(records) > _FEW else ()
        grouped = {name for _, names in sections for name in names}
        parts = [("Options", [name for name in records if name not in grouped])]
        parts += [(title, [name for name in names if name in records]) for title, names in sections]
        for title, names in parts:
            if names:
                with formatter.section(title):
                    formatter.write_dl([records[name] for name in names])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples, exit codes, variables and files."""
        _write_page(self, ctx, formatter)


class Group(click.Group):
    """A command that has commands, whose help has sections too."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out the command; it is done when nobody reads on, as with `| head`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # What is still buffered would fail again when the process ends.
            sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            raise click.exceptions.Exit(0) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        from rca.cli_pages import page

        limit = formatter.width - 6 - max(map(len, self.commands))
        rest = dict.fromkeys(self.list_commands(ctx))
        for title, names in (*page(_names(ctx)).commands, ("Commands", tuple(rest))):
            shown = [name for name in names if name in rest]
            for name in shown:
                del rest[name]
            if shown:
                with formatter.section(title):
                    formatter.write_dl([(name, self._short(name, ctx, limit)) for name in shown])

    def _short(self, name: str, ctx: click.Context, limit: int) -> str:
        from rca.cli_pages import page

        return page([*_names(ctx), name]).short or self.commands[name].get_short_help_str(limit)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples, exit codes, variables and files."""
        _write_page(self, ctx, formatter)


Group.group_class = Group


def can_be_set(option: click.Parameter) -> bool:
    """Whether a variable or a file may set a parameter."""
    return isinstance(option, click.Option) and option.name not in _ONLY_TYPED


def key(option: click.Parameter) -> str:
    """Name of an option in a configuration file: the long flag without its hyphens."""
    flags = [flag for flag in option.opts if flag.startswith("--")]
    return flags[0].lstrip("-") if flags else str(option.name)


def variables(path: list[str], option: click.Parameter) -> list[str]:
    """Variables that set an option: that of the command, then that of all commands where they mean the same by it."""
    name = key(option)
    own = "_".join([*path, name])
    return [f"RCA_{item.upper().replace('-', '_')}" for item in (own, *([name] if option.name in SHARED else ()))]


def _names(context: click.Context | None) -> list[str]:
    """The words of a command behind `rca`."""
    names: list[str] = []
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name or "")
        context = context.parent
    return names


def _write_page(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    from rca.cli_pages import page

    path = _names(ctx)
    found = page(path)
    if found.examples:
        with formatter.section("Examples"):
            for line, why in found.examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                formatter.indent()
                formatter.write_text(why)
                formatter.dedent()
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), meaning) for code, meaning in found.exit_codes])
    settable = [option for option in command.params if can_be_set(option)]
    rows = list(found.variables)
    if settable:
        first = settable[0]
        rows.insert(
            0, (variables(path, first)[0], f"Default of --{key(first)}; every other option has such a variable.")
        )
    if rows:
        with formatter.section("Environment"):
            formatter.write_dl(rows)
    if found.files:
        with formatter.section("Files"):
            formatter.write_dl(found.files)
    for note in found.notes:
        formatter.write_paragraph()
        formatter.write_text(inspect.cleandoc(note))
