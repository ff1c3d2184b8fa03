"""Where JSON holds `null`, which is how a number that is none is spelled; a text may say "null" as it likes."""

import msgspec

__all__ = ["holds_null"]


def holds_null(text: bytes) -> bool:
    """Return whether there is a `null` anywhere in JSON."""
    return _is_or_holds_none(msgspec.json.decode(text))


def _is_or_holds_none(value: object) -> bool:
    match value:
        case dict():
            return any(_is_or_holds_none(each) for each in value.values())
        case list():
            return any(_is_or_holds_none(each) for each in value)
    return value is None
