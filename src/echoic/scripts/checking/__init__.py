"""Pure. What is wrong with a T-script before it runs, and what does it want from its tools?"""

from echoic.scripts.checking.checker import Findings, check, require
from echoic.scripts.checking.interface import Interface, interface, mismatch
from echoic.scripts.checking.signatures import SIGNATURES, Signature

__all__ = ["SIGNATURES", "Findings", "Interface", "Signature", "check", "interface", "mismatch", "require"]
