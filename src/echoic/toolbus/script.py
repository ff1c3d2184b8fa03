"""T-scripts in Python's spelling, for programs that run a bus: `from echoic.toolbus import script as ts`.

Everything is `echoic.scripts.python_spelling`; what it makes is given to `Bus`, or to `write_script`.
"""

from echoic.scripts.python_spelling import *  # noqa: F403 - the same names, in one more place
from echoic.scripts.python_spelling import __all__ as __all__  # noqa: PLC0414
