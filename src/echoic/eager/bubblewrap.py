"""The command that starts a confined process: which files it sees, and which namespaces it is in.

bubblewrap makes an empty file system in memory, binds into it what is named, read-only, and starts a program with
namespaces of its own. What is bound is what Python needs to start and shipped code may import, each at its own place:

    the interpreter, its shared library, the standard library
    the folders of packages that this program imports from (site-packages)
    echoic itself, without the repository around it
    the shared libraries of the system (/usr/lib, /lib, ...) and the list of where they are

There is no /proc, /dev, /tmp, /etc or home, and in the end everything is made read-only, the empty file system itself
included. The namespaces are those of users, processes, network, IPC, host name and control groups. Inside, the process
is nobody (65534) without capabilities, even when root has started it: outside it is then root by number, but can do
nothing with it, having neither root's capabilities nor sight of root's files. It is process 1 of its namespace, so
killing it ends everything that it could have started. `--die-with-parent` lets it end with the hub.

Starting takes 4 ms; the rest is Python.
"""

import shutil
import site
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
import numpy

import echoic
from echoic.errors import RefusedError

__all__ = ["command", "find"]

NOBODY: Final = "65534"
SYSTEM_FOLDERS: Final = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/lib", "/lib32", "/lib64")
SYSTEM_FILES: Final = ("/etc/ld.so.cache",)
FLAGS: Final = ("-I", "-S", "-B", "-X", "utf8")


def find() -> str:
    """Return where bubblewrap is.

    Raises:
        RefusedError: It is nowhere.
    """
    found = shutil.which("bwrap")
    if found is None or not sys.platform.startswith("linux"):
        raise RefusedError(
            "modulators of this key run only in a confined process, and bubblewrap, which confines it, is not "
            "installed here (on Debian and Ubuntu: apt install bubblewrap)"
        )
    return found


def command(bwrap: str, info: int) -> list[str]:
    """Return the command line that starts a confined process.

    Args:
        bwrap: Where bubblewrap is.
        info: The descriptor to which it says which process it has started.
    """
    return [bwrap, "--info-fd", str(info), *_options(), "--", *_python()]


@lru_cache(maxsize=1)
def _options() -> tuple[str, ...]:
    made = ["--unshare-all", "--unshare-user", "--uid", NOBODY, "--gid", NOBODY, "--hostname", "modulator"]
    made += ["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    for folder in SYSTEM_FOLDERS:
        made += _system_folder(Path(folder))
    for file in (*SYSTEM_FILES, *_files()):
        made += ["--ro-bind-try", file, file]
    return (*made, "--remount-ro", "/", "--chdir", "/")


def _system_folder(folder: Path) -> list[str]:
    """Return how a folder of the system appears: /lib is often a link into /usr."""
    if folder.is_symlink():
        return ["--symlink", str(folder.readlink()), str(folder)]
    return ["--ro-bind", str(folder), str(folder)] if folder.is_dir() else []


@lru_cache(maxsize=1)
def _python() -> tuple[str, ...]:
    folder = Path(echoic.__file__).parent
    paths = [*_packages(), str(folder.parent)]
    return (str(_interpreter()), *FLAGS, str(folder / "eager" / "boot.py"), str(folder), *paths)


def _files() -> list[str]:
    """Return the files and folders outside of the system's that Python needs, each once, outer ones first."""
    wanted = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    wanted |= {Path(sys.base_prefix, "lib", "python" + sysconfig.get_python_version())}
    wanted |= {_interpreter(), *_libraries(), *map(Path, _packages()), Path(echoic.__file__).parent}
    resolved = {path for each in wanted for path in (each, each.resolve())}
    # A virtual environment is no prefix of the interpreter inside: only its packages are there.
    return sorted(str(path) for path in resolved if path.exists() and str(path) != sys.prefix)


def _interpreter() -> Path:
    """Return the interpreter itself, not the link to it in a virtual environment."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


def _libraries() -> list[Path]:
    """Return the shared library of Python, if it is one."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    return [Path(folder, name)] if folder and name and str(name).find(".so") > 0 else []


def _packages() -> list[str]:
    """Return the folders of installed packages, and those where the ones that echoic needs were found."""
    known = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    known += [str(Path(package.__file__).parents[1]) for package in (msgspec, numpy) if package.__file__]
    return list(dict.fromkeys(path for path in known if Path(path).is_dir()))
