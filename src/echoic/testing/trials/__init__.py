"""Edge: touches whatever it tries. Does echoic keep its promises through faults? The campaign, a trial for each."""

from echoic.testing.trials.catalogue import TRIALS, trial_named
from echoic.testing.trials.commit import commit_name
from echoic.testing.trials.trial import Findings, Run, Tell, Trial

__all__ = ["TRIALS", "Findings", "Run", "Tell", "Trial", "commit_name", "trial_named"]
