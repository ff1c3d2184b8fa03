"""Every parser of echoic that reads what others have written: from the wire, from files, from people.

A parser is one row. What it needs besides, a target, is in the module of its subject. Whoever writes a parser adds a row
here, and `tests/reliability` fuzzes it from then on.
"""

from typing import Final

from echoic.errors import LocalError
from echoic.testing.parsers.parser import Parser

__all__ = ["PARSERS", "parser_named"]

HERE: Final = "echoic.testing.parsers"

PARSERS: Final[tuple[Parser, ...]] = (
    Parser("frames", f"{HERE}.of_wire:FRAMES", ("echoic.wire.frames",)),
    Parser("hello", f"{HERE}.of_wire:HELLO", ("echoic.wire.hello",)),
    Parser("descriptors", f"{HERE}.of_wire:DESCRIPTORS", ("echoic.wire.announcement", "echoic.formats")),
    Parser("batches", f"{HERE}.of_wire:BATCHES", ("echoic.wire",)),
    Parser("control", f"{HERE}.of_messages:CONTROL", ("echoic.channels.messages",)),
    Parser("groups", f"{HERE}.of_messages:GROUPS", ("echoic.groups",)),
    Parser("agreement", f"{HERE}.of_messages:AGREEMENT", ("echoic.groups.agreement.messages",)),
    Parser("intake", f"{HERE}.of_messages:INTAKE", ("echoic.hub.intake_messages",)),
    Parser("portions", f"{HERE}.of_messages:PORTIONS", ("echoic.replicas.portions",)),
    Parser("parcels", f"{HERE}.of_messages:PARCELS", ("echoic.eager.parcel",)),
    Parser("viewer", f"{HERE}.of_messages:VIEWER", ("echoic.viewer.messages",)),
    Parser("tools", f"{HERE}.of_terms:TOOLS", ("echoic.toolbus.protocol", "echoic.toolbus.references.words")),
    Parser("terms", f"{HERE}.of_terms:TEXT", ("echoic.terms",)),
    Parser("saf", f"{HERE}.of_terms:SAF", ("echoic.terms",)),
    Parser("baf", f"{HERE}.of_terms:BAF", ("echoic.terms",)),
    Parser("appendix_b", f"{HERE}.of_terms:APPENDIX_B", ("echoic.terms",)),
    Parser("ecode", f"{HERE}.of_code:ECODE", ("echoic.ecode",)),
    Parser("python", f"{HERE}.of_code:PYTHON", ("echoic.ecode",)),
    Parser("scripts", f"{HERE}.of_code:SCRIPTS", ("echoic.scripts",)),
    Parser("types", f"{HERE}.of_code:TYPES", ("echoic.formats",)),
    Parser("values", f"{HERE}.of_code:VALUES", ("echoic.formats",)),
    Parser("addresses", f"{HERE}.of_code:ADDRESSES", ("echoic.links.address", "echoic.channels.identity")),
    Parser("journal", f"{HERE}.of_files:JOURNAL", ("echoic.recorder",)),
    Parser("log", f"{HERE}.of_files:LOG", ("echoic.engines.embedded",)),
    Parser("runs", f"{HERE}.of_files:RUNS", ("echoic.toolbus.run_file",)),
    Parser("recordings", f"{HERE}.of_files:RECORDINGS", ("echoic.toolbus.record",)),
    Parser("pipelines", f"{HERE}.of_files:PIPELINES", ("echoic.spark.pipeline",)),
    Parser("settings", f"{HERE}.of_files:SETTINGS", ("echoic.cli.settings",)),
    Parser("trusted", f"{HERE}.of_files:TRUSTED", ("echoic.eager.keys",)),
)


def parser_named(name: str) -> Parser:
    """Return a parser by its name.

    Raises:
        LocalError: There is none.
    """
    for parser in PARSERS:
        if parser.name == name:
            return parser
    raise LocalError(f"there is no parser `{name[:40]}`, expected one of: {', '.join(each.name for each in PARSERS)}")
