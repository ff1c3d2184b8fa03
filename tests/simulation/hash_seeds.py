"""Runs must not depend on the order in which Python's sets and dictionaries hash."""

import os
import subprocess
import sys

__all__ = ["printed_under_hash_seeds"]


def printed_under_hash_seeds(program: str) -> set[str]:
    """Return what a program prints, each text once, when it is run with different hash seeds."""
    return {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
