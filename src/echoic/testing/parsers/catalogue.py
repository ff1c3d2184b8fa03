"""Every parser of echoic that reads what others have written: from the wire, from files, from people.

A parser is one row. What it needs besides, a target, is in the module of its subject. Whoever writes a parser adds a
row here, and `tests/reliability` fuzzes it from then on.
"""

from typing import Final

from echoic.errors import LocalError
from echoic.testing.parsers.parser import Parser

__all__ = ["PARSERS", "parser_named"]

HERE: Final = "echoic.testing.parsers"

PARSERS: Final[tuple[Parser, ...]] = (
    Parser("frames", f"{HERE}.of_wire:FRAMES"),
    Parser("hello", f"{HERE}.of_wire:HELLO"),
    Parser("descriptors", f"{HERE}.of_wire:DESCRIPTORS"),
    Parser("batches", f"{HERE}.of_wire:BATCHES"),
    Parser("bundles", f"{HERE}.of_wire:BUNDLES"),
    Parser("answers", f"{HERE}.of_wire:ANSWERS"),
    Parser("control", f"{HERE}.of_messages:CONTROL"),
    Parser("groups", f"{HERE}.of_messages:GROUPS"),
    Parser("packs", f"{HERE}.of_messages:PACKS"),
    Parser("agreement", f"{HERE}.of_messages:AGREEMENT"),
    Parser("intake", f"{HERE}.of_messages:INTAKE"),
    Parser("portions", f"{HERE}.of_messages:PORTIONS"),
    Parser("parcels", f"{HERE}.of_messages:PARCELS"),
    Parser("viewer", f"{HERE}.of_messages:VIEWER"),
    Parser("requests", f"{HERE}.of_bridge:REQUESTS"),
    Parser("websockets", f"{HERE}.of_bridge:WEBSOCKETS"),
    Parser("cells", f"{HERE}.of_cells:CELLS"),
    Parser("tools", f"{HERE}.of_terms:TOOLS"),
    Parser("ng_tools", f"{HERE}.of_terms:NG_TOOLS"),
    Parser("terms", f"{HERE}.of_terms:TEXT"),
    Parser("saf", f"{HERE}.of_terms:SAF"),
    Parser("baf", f"{HERE}.of_terms:BAF"),
    Parser("appendix_b", f"{HERE}.of_terms:APPENDIX_B"),
    Parser("ecode", f"{HERE}.of_code:ECODE"),
    Parser("python", f"{HERE}.of_code:PYTHON"),
    Parser("scripts", f"{HERE}.of_code:SCRIPTS"),
    Parser("types", f"{HERE}.of_code:TYPES"),
    Parser("values", f"{HERE}.of_code:VALUES"),
    Parser("addresses", f"{HERE}.of_code:ADDRESSES"),
    Parser("csv", f"{HERE}.of_imports:CSV"),
    Parser("json", f"{HERE}.of_imports:JSON"),
    Parser("mcap", f"{HERE}.of_imports:MCAP"),
    Parser("journal", f"{HERE}.of_files:JOURNAL"),
    Parser("log", f"{HERE}.of_files:LOG"),
    Parser("runs", f"{HERE}.of_files:RUNS"),
    Parser("recordings", f"{HERE}.of_files:RECORDINGS"),
    Parser("pipelines", f"{HERE}.of_files:PIPELINES"),
    Parser("settings", f"{HERE}.of_files:SETTINGS"),
    Parser("trusted", f"{HERE}.of_files:TRUSTED"),
    Parser("tokens", f"{HERE}.of_trust:TOKENS"),
    Parser("rights", f"{HERE}.of_trust:RIGHTS"),
)


def parser_named(name: str) -> Parser:
    """Return a parser by its name.

    Raises:
        LocalError: There is none.
    """
    for parser in PARSERS:
        if parser.name == name:
            return parser
    from echoic.ecode.syntax.nearest import did_you_mean  # late: a compiler comes with it

    names = [each.name for each in PARSERS]
    raise LocalError(
        f"there is no parser `{name[:40]}`{did_you_mean(name, names)}, expected one of: {', '.join(names)}"
    )
