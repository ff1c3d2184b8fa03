"""The filter on system calls of a confined process: what is not named here is refused.

Namespaces decide what a process can see; the filter decides what it can ask the kernel for. It is a list of what
Python needs in order to compute, to import a module that lies in view, to wait and to speak over pipes that are open
already. Everything else fails with EPERM, which Python shows as PermissionError: processes and threads (`clone`,
`fork`, `execve`), sockets, signals to others, other processes' memory (`ptrace`), mounts, namespaces, keys, `bpf`,
`io_uring`, and whatever kernels to come will have. A list of the forbidden would have to know those.

The kernel takes such a filter as a program for the small machine of the Berkeley Packet Filter, 8 bytes for each
instruction; the machine sees the number of the call, the architecture and the arguments:

    offset of the data  0: u32 number   4: u32 architecture   16 + 8 * n: u64 argument n, the low half first

    code u16, jump if true u8, jump if false u8, operand u32
    0x20 0 0 k     load the word at k
    0x15 t f k     skip t instructions if equal to k, else f
    0x45 t f k     skip t if one of the bits of k is set, else f
    0x06 0 0 k     end: 0x7fff0000 allows, 0x00050000 + n fails with error n, 0x80000000 kills

    load architecture; if it is not ours, kill
    load number
    for each allowed one: if equal, go to `allow`
    if `openat`, load its flags; if they ask for anything but reading, go to `refuse`, else go to `allow`
    refuse: fail with EPERM
    allow:  allow

A call of another architecture (32 bits on x86_64) would have other numbers, hence the first test; the calls of the x32
interface have numbers of their own, which are not in the list. Memory is not filtered but limited (`inside`).

The filter is put in place by the process itself, before it has seen a line of foreign code, and stays. bubblewrap could
do that, too, but earlier: then `execve` would have to be allowed for ever, since bubblewrap needs it afterwards.
"""

import ctypes
import errno
import os
import struct
from typing import Final

__all__ = ["ARCHITECTURES", "apply", "program"]

ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000 + errno.EPERM
KILL: Final = 0x80000000

ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The kernel's number of each architecture, and its column in `CALLS`."""

# O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND and the own bit of O_TMPFILE, the same on both architectures.
WRITING: Final = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000

CALLS: Final[dict[str, tuple[int | None, int | None]]] = {
    # bytes of open files
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "lseek": (8, 62),
    "close": (3, 57),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    # what is in view
    "stat": (4, None),
    "lstat": (6, None),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    # its own memory
    "brk": (12, 214),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    # time and waiting
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "nanosleep": (35, 101),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "restart_syscall": (219, 128),
    # itself
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getrusage": (98, 165),
    "times": (100, 153),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "sched_getaffinity": (204, 123),
    "getrandom": (318, 278),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "membarrier": (324, 283),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
OPENAT: Final = (257, 56)
PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_SECCOMP: Final = 22
SECCOMP_MODE_FILTER: Final = 2


def program(machine: str) -> bytes | None:
    """Return the filter for an architecture by the name that `uname` has for it, None if there is none."""
    if machine not in ARCHITECTURES:
        return None
    architecture, column = ARCHITECTURES[machine]
    allowed = sorted(number for numbers in CALLS.values() if (number := numbers[column]) is not None)
    count = len(allowed)
    made = [
        instruction(0x20, 0, 0, 4),
        instruction(0x15, 1, 0, architecture),
        instruction(0x06, 0, 0, KILL),
        instruction(0x20, 0, 0, 0),
    ]
    # Behind the last of these stand four instructions, then `allow`.
    made += [instruction(0x15, count - place + 3, 0, number) for place, number in enumerate(allowed)]
    made += [
        instruction(0x15, 0, 2, OPENAT[column]),
        instruction(0x20, 0, 0, 16 + 8 * 2),
        instruction(0x45, 0, 1, WRITING),
        instruction(0x06, 0, 0, REFUSE),
        instruction(0x06, 0, 0, ALLOW),
    ]
    return b"".join(made)


def instruction(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    """Return one instruction of the machine."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)


class Program(ctypes.Structure):
    """What the kernel is given: how many instructions, and where they are."""

    _fields_ = (("count", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def apply() -> bool:
    """Put the filter on this thread for the rest of its life; return False if the machine has none."""
    instructions = program(os.uname().machine)
    if instructions is None:
        return False
    held = ctypes.create_string_buffer(instructions, len(instructions))
    given = Program(len(instructions) // 8, ctypes.addressof(held))
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(given), 0, 0) == 0)
