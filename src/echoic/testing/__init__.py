"""Pure. The public test kit: hostile input for every parser, made from a seed."""

from echoic.testing.fuzz import Finding, FrameFuzzer, FuzzReport

__all__ = ["Finding", "FrameFuzzer", "FuzzReport"]
