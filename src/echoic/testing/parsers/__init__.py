"""Edge: touches whatever it tries. Which parsers has echoic, and what do they make of hostile input?"""

from echoic.testing.parsers.catalogue import PARSERS, parser_named
from echoic.testing.parsers.corpus import choose, keep, kept_corpus, kept_inputs
from echoic.testing.parsers.parser import Parser, Target

__all__ = ["PARSERS", "Parser", "Target", "choose", "keep", "kept_corpus", "kept_inputs", "parser_named"]
