"""What `echoic demo` is about: two event types, what is derived from them, and the pipeline, as a file in TOML.

The types are the papers': stock trades, and the wind field of an atmosphere model on 37 layers of 253 points. Each has
a derivation. The live channels `odd_lots` and `layer_means` run it inside the process that publishes; the pipeline runs
the same code on Spark over what was recorded: `odd_lots` on columns, `layer_means` by a compiled kernel in the reader.
So the demo can compare what came out of the two, event by event.
"""

from typing import Annotated, Any, Final

from numpy.typing import NDArray

from echoic.formats import Array, event, float64

__all__ = [
    "LAYERS",
    "LAYER_MEANS",
    "LOT",
    "ODD_LOTS",
    "ONE_SYMBOL",
    "POINTS",
    "LayerMeans",
    "Tick",
    "Trade",
    "Wind",
    "pipeline_text",
]

LAYERS: Final = 37
POINTS: Final = 253
LOT: Final = 100
"""A trade of fewer shares is an odd lot."""


@event
class Trade:
    """A stock trade."""

    at: float
    symbol: str
    price: float
    volume: int


@event
class Wind:
    """One step of the atmosphere model: how fast the west wind blows, in metres a second."""

    at: float
    step: int
    speed: Annotated[NDArray[Any], Array[float64, LAYERS, POINTS]]


@event
class LayerMeans:
    """What is left of a wind field: the mean of each layer."""

    at: float
    step: int
    mean: Annotated[NDArray[Any], Array[float64, LAYERS]]


@event
class Tick:
    """What the pipeline makes of the trades of one second."""

    at: float
    symbol: str
    trades: int
    volume: int
    mean: float


ONE_SYMBOL: Final = "{ return input.symbol == param.symbol && input.volume >= param.volume; }"

ODD_LOTS: Final = "{ return input.volume > 0 && input.volume < param.lot; }"

LAYER_MEANS: Final = f"""\
{{
    int layer, point;
    output.at = input.at;
    output.step = input.step;
    for (layer = 0; layer < {LAYERS}; layer++) {{
        double total = 0.0;
        for (point = 0; point < {POINTS}; point++) {{
            total = total + input.speed[layer][point];
        }}
        output.mean[layer] = total / {POINTS};
    }}
    return 1;
}}
"""

PIPELINE: Final = """\
# The pipeline of `echoic demo`. What was recorded is in journals/; run it again with
#   echoic pipeline run demo.toml --once
name = "demo"
state = "state"                # checkpoints: how far each output has come
tables = "tables"
every = "1 second"

[sources.trades]
journal = "journals"
channel = "trades"
time = "at"                    # what windows are made of: the exchange's own clock
watermark = "1 second"         # a window is over when a trade has come that is so much later

[sources.layer_means]          # wind fields; the reader makes 37 means out of 9361 numbers before Spark sees them
journal = "journals"
channel = "wind"
output = "LayerMeans{{at: float, step: int, mean: float[{layers}]}}"
derive = '''
{layer_means}'''

[steps.odd_lots]               # the code that runs inside the exchange for the channel of the same name
from = "trades"
derive = "{odd_lots}"
params = {{ lot = {lot} }}

[steps.per_second]
from = "trades"
window = "1 second"
by = ["symbol"]

[steps.per_second.aggregates]
at = "max(at)"
trades = "count(*)"
volume = "sum(volume)"
mean = "avg(price)"

[outputs.odd_lots]
from = "odd_lots"
table = "odd_lots"

[outputs.layer_means]
from = "layer_means"
table = "layer_means"

[outputs.per_second]
from = "per_second"
table = "per_second"

[outputs.ticker]               # results as a channel, recorded like any other
from = "per_second"
channel = "ticker"
intake = "journals"
"""


def pipeline_text() -> str:
    """Return the pipeline, as it is written to a file."""
    return PIPELINE.format(layers=LAYERS, layer_means=LAYER_MEANS, odd_lots=ODD_LOTS, lot=LOT)
