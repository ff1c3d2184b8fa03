"""What a writer of `format("echoic")` was asked for: Spark's options, read once and checked before anything is sent.

frame.writeStream.format("echoic").option("channel", "alerts").option("names", "127.0.0.1:7400").start()

channel     whose events the rows become: echoic://host:port/name, or a name that `names` know
names       address of a name server, or several with commas
query       what the rows are known by, so that none is taken twice; for a stream Spark's own id of the query, which
            a checkpoint keeps, and for a batch an id of its own. Who names a batch may write it again in vain, and a
            stream that is named and has lost its checkpoint is refused.
timeout     seconds to be patient with an intake that does not answer, or gets no further
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from echoic.errors import PipelineError
from echoic.spark.option_names import known_options, shown

__all__ = ["SINK_OPTIONS", "SinkOptions"]

SINK_OPTIONS: Final = ("channel", "names", "query", "timeout")
SPARKS_OWN: Final = frozenset({"checkpointlocation", "queryname", "outputmode"})
TIMEOUT_SECONDS: Final = 60.0
TIMEOUT_SECONDS_MAX: Final = 86_400.0
QUERY_CHARACTERS_MAX: Final = 200


class SinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    channel: str
    names: tuple[str, ...] = ()
    query: str = ""
    timeout: float = TIMEOUT_SECONDS

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "SinkOptions":
        """Read the options that Spark gives.

        Raises:
            PipelineError: One is not known, has a wrong value, or is missing.
        """
        given = known_options(options, SINK_OPTIONS, "sink", SPARKS_OWN)
        channel = given.get("channel", "").strip()
        if not channel:
            raise PipelineError("a sink of format `echoic` needs the option `channel`, the name or id of a channel")
        names = tuple(word.strip() for word in given.get("names", "").split(",") if word.strip())
        if "://" not in channel and not names:
            raise PipelineError(
                f"nobody is given who knows channel `{shown(channel)}`: set `names` to the address of a name server, "
                "or `channel` to an id such as echoic://127.0.0.1:7401/alerts"
            )
        return cls(
            channel=channel, names=names, query=_query(given.get("query", "")), timeout=_timeout(given.get("timeout"))
        )


def _query(text: str) -> str:
    if len(text) > QUERY_CHARACTERS_MAX or not text.isprintable():
        raise PipelineError(
            f"the option `query` is a name of at most {QUERY_CHARACTERS_MAX} printable characters, got {shown(text)!r}"
        )
    return text


def _timeout(text: str | None) -> float:
    if text is None:
        return TIMEOUT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= TIMEOUT_SECONDS_MAX:
        raise PipelineError(
            f"the option `timeout` is a number of seconds from 0 to {TIMEOUT_SECONDS_MAX:g}, got `{shown(text)}`"
        )
    return seconds
