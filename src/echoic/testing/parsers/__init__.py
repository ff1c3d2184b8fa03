"""Edge: touches whatever it tries. Which parsers has echoic, and what do they make of hostile input? Each in a table."""

from echoic.testing.parsers.catalogue import PARSERS, parser_named
from echoic.testing.parsers.corpus import kept_corpus, kept_inputs
from echoic.testing.parsers.parser import Parser, Target

__all__ = ["PARSERS", "Parser", "Target", "kept_corpus", "kept_inputs", "parser_named"]
