"""A peer: what `peers` starts and `control` describes.

python -m echoic.testing.bench MODULE:FUNCTION SETUP ARGUMENT
"""

import sys
from importlib import import_module

import msgspec

from echoic.testing.bench.contest import Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.placement import take_place


def _main() -> None:
    take_place()
    target, setup, argument = sys.argv[1:]
    module, _, function = target.partition(":")
    run = getattr(import_module(module), function)
    run(Control(), msgspec.json.decode(setup, type=Setup), msgspec.json.decode(argument, type=Argument))


if __name__ == "__main__":
    _main()
