"""Pure. What is known about a program before it runs: loops that end, what an event costs, which checks are idle."""

from echoic.ecode.analysis.survey import Analysis, analyse

__all__ = ["Analysis", "analyse"]
