"""Pure. Can a program be said in SQL with C's meaning, and how?"""

from echoic.ecode.sql.columns import spark_type
from echoic.ecode.sql.terms import DEPTH_MAX, TEXT_MAX
from echoic.ecode.sql.translation import Refusal, Translation, translate

__all__ = ["DEPTH_MAX", "TEXT_MAX", "Refusal", "Translation", "spark_type", "translate"]
