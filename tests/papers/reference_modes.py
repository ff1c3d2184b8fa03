"""A plugin of pytest: buses and tools have the threshold that TB_THRESHOLD says, unless a test says another.

    TB_THRESHOLD=0 pytest -p tests.papers.reference_modes tests/toolbus

Programs of tools read the same variable by themselves.
"""

import os

import pytest

from echoic.toolbus import Bus


def pytest_configure(config: pytest.Config) -> None:
    """Change the default, which no test depends on."""
    Bus.from_script.__func__.__kwdefaults__["threshold_bytes"] = float(os.environ["TB_THRESHOLD"])  # type: ignore[attr-defined]
