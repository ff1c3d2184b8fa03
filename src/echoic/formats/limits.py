"""What an event type may measure at most.

A descriptor comes from a stranger, so every number in it is compared with one of these before anything is
allocated for it. They are far above what people declare (the largest type in the papers has some dozens of fields)
and far below what would hurt.
"""

__all__ = [
    "DEFAULT_BYTES_MAX",
    "DESCRIPTOR_BYTES_MAX",
    "DIMENSIONS_MAX",
    "FIELDS_MAX",
    "MEMBERS_MAX",
    "NAME_BYTES_MAX",
    "NESTING_MAX",
    "RECORD_BYTES_MAX",
    "REGISTRY_FIELDS_MAX",
    "REGISTRY_FORMATS_MAX",
]

NAME_BYTES_MAX = 128
FIELDS_MAX = 4096  # counted with the fields of nested records, once for each place they stand in
NESTING_MAX = 64
DIMENSIONS_MAX = 8
MEMBERS_MAX = 4096
DEFAULT_BYTES_MAX = 4096
RECORD_BYTES_MAX = 16 * 1024 * 1024  # the fixed part of one record; also what one frame carries by default
DESCRIPTOR_BYTES_MAX = 512 * 1024
REGISTRY_FORMATS_MAX = 16_384
REGISTRY_FIELDS_MAX = 262_144  # of all its formats together; a field takes about 200 bytes
