"""Edge: touches databases and HTTP. Replicated logs and services: what a group has ordered, kept and answered."""

from echoic.replicas.databases import Database, Durability
from echoic.replicas.log import Logged, ReplicatedLog, Stamp
from echoic.replicas.portions import Portion
from echoic.replicas.service import CounterService
from echoic.replicas.urls import database_of
from echoic.replicas.writing import LogOptions, LogStatistics

__all__ = [
    "CounterService",
    "Database",
    "Durability",
    "LogOptions",
    "LogStatistics",
    "Logged",
    "Portion",
    "ReplicatedLog",
    "Stamp",
    "database_of",
]
