"""A home for Spark in which Python starts faster.

Spark puts the archive `python/lib/pyspark.zip` of its home in front of the path of every Python that it starts. Python
keeps no compiled code for what it imports from an archive, so each of them compiles the same 114 modules again: 0.9 s
of computing instead of 0.3, before the program that reads a stream has begun; and a pipeline starts several for each
output. Spark also gives up on one that has not connected after ten seconds, which on a busy machine happens.

Where PySpark is installed as a package, every Python finds it there, compiled. So a session on this machine is given a
home that consists of links to the folders of the package and lacks the archive: Python passes over what is not there.
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import Final

from echoic.spark.java import cache_folders

__all__ = ["spark_home"]

FOLDERS: Final = ("bin", "jars", "sbin")


def spark_home() -> Path | None:
    """Return a folder for SPARK_HOME, None if Spark had better look for its home by itself."""
    found = importlib.util.find_spec("pyspark")
    package = Path(found.origin).parent if found is not None and found.origin is not None else None
    if package is None or not all((package / name).is_dir() for name in FOLDERS):
        return None
    name = f"spark-{hashlib.sha256(str(package).encode()).hexdigest()[:16]}"
    for folder in cache_folders():
        try:
            return _linked(folder / name, package)
        except OSError:
            continue  # the next one, or none: it only takes longer
    return None


def _linked(home: Path, package: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in FOLDERS:
        link = home / name
        try:
            link.symlink_to(package / name)
        except FileExistsError:
            if link.readlink() != package / name:
                raise
    return home
