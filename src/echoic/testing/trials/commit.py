"""Which commit of echoic runs, for whoever wants to see a failure again."""

import subprocess
from pathlib import Path

import echoic

__all__ = ["commit_name"]


def commit_name() -> str:
    """Return the commit of the checkout that echoic runs from; its version, if it is installed."""
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607 - whichever git there is
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return echoic.__version__
    return told.stdout.strip() or echoic.__version__
