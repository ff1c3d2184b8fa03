"""Commands in the documents are commands of the program: each verb is there, and has every option that is shown."""

import re
import shlex
from pathlib import Path

import cyclopts
import pytest

from echoic.cli.app import app, load_all

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\./run )?echoic (.+)$", re.MULTILINE)
EVERYWHERE = {"--help", "--version", "--install-completion"}


def commands() -> list[tuple[str, str]]:
    """Return where each command stands, and its words."""
    return [
        (str(path.relative_to(ROOT)), command.partition(" | ")[0])
        for path in DOCUMENTS
        for block in SHELL.findall(path.read_text(encoding="utf-8"))
        for command in COMMAND.findall(block.replace("\\\n", " "))
    ]


@pytest.fixture(scope="module")
def program() -> cyclopts.App:
    load_all()
    return app


def unknown_in(command: str, program: cyclopts.App) -> list[str]:
    """Return the words of a command that the program does not know: a verb, or options of it."""
    words = shlex.split(command, comments=True)
    verbs, (*_, verb), rest = program.parse_commands(words)
    if not verbs and not words[0].startswith("-"):
        return words[:1]
    known = set(EVERYWHERE)
    if verb.default_command is not None:
        for argument in verb.assemble_argument_collection():
            known.update(argument.names)
    return [word for word in rest if re.match(r"--\w|-[a-z]$", word) and word.partition("=")[0] not in known]


@pytest.mark.parametrize(("place", "command"), commands(), ids=lambda text: text)
def test_a_command_in_a_document_is_one_of_the_program(place: str, command: str, program: cyclopts.App) -> None:
    assert not unknown_in(command, program)


def test_a_verb_and_an_option_that_are_not_there_are_found(program: cyclopts.App) -> None:
    assert unknown_in("eco trades", program) == ["eco"]
    assert unknown_in("echo trades --flter 'input.price < 75'", program) == ["--flter"]
    assert not unknown_in("echo trades --filter 'input.price < 75'", program)
