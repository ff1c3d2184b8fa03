"""Edge: touches Spark and files. How is a whole pipeline described, started, watched and stopped?"""

from echoic.spark.pipeline.checking import check_spec, flow_of, order
from echoic.spark.pipeline.lineage import lineage_of
from echoic.spark.pipeline.loading import load_spec, read_spec
from echoic.spark.pipeline.pipeline import Pipeline, Stream
from echoic.spark.pipeline.placing import goal_of
from echoic.spark.pipeline.progress import Progress, Tally
from echoic.spark.pipeline.running import Running
from echoic.spark.pipeline.spec import OutputSpec, PipelineSpec
from echoic.spark.pipeline.state import Run, StateFolder

__all__ = [
    "OutputSpec",
    "Pipeline",
    "PipelineSpec",
    "Progress",
    "Run",
    "Running",
    "StateFolder",
    "Stream",
    "Tally",
    "check_spec",
    "flow_of",
    "goal_of",
    "lineage_of",
    "load_spec",
    "order",
    "read_spec",
]
