"""`echoic up`: a place for channels, for as long as it runs."""

from echoic.cli.declaring import declared_type
from echoic.cli.meeting import attend, stay
from echoic.cli.screen import json_text, say
from echoic.cli.where import NOWHERE, AsJson, Where, repeated
from echoic.errors import FormatError
from echoic.hub import Channel, Hub

__all__ = ["up"]


def up(*channels: str, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """Serve names and manage channels until Ctrl-C.

    A channel ends with the hub that created it, so that those of `echoic pub` come and go; these stay.

    Try:
        echoic up
        echoic up 'trades=Trade{symbol: str, price: float}' fields=echoic.testing.samples:WindField

    Args:
        channels: CHANNEL=TYPE for each; TYPE is MODULE:CLASS or a declaration, and nothing for an untyped channel.
        as_json: Print the addresses as JSON.
        where: Where names are served; here, if nobody does.
    """
    with attend(where, "up") as hub:
        made = [_create(hub, word) for word in channels]
        if as_json:
            ids = {channel.name: channel.id for channel in made}
            print(json_text({"address": hub.address, "names": hub.names[0], "channels": ids}), flush=True)
        say(f"up at {hub.address}, names at {hub.names[0]}, Ctrl-C ends")
        for channel in made:
            say(f"  {channel.id}  {channel.format.name if channel.format else '(untyped)'}")
        _suggest(made, repeated(where))
        stay()


def _create(hub: Hub, word: str) -> Channel:
    name, equals, declared = word.partition("=")
    if not equals:
        raise FormatError(f"expected CHANNEL=TYPE, got `{word}`")
    return hub.create(name, declared_type(declared) if declared else None)


def _suggest(made: list[Channel], options: str) -> None:
    """Say what to type next, with the options that it takes to find what is here."""
    name = made[0].name if made else "trades"
    declaration = "" if made and made[0].format else " 'Trade{symbol: str, price: float}'"
    fields = [field.name for field in made[0].format.fields] if made and made[0].format else ["symbol", "price"]
    values = " ".join(f"{field}=..." for field in fields)
    words = ("ls", f"echo {name}", f"pub {name}{declaration} {values}", "top")
    say(f"try: {'; '.join(f'echoic {each}{options}' for each in words)}")
