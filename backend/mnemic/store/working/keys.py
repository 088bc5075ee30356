"""How names become keys: injectively, and never as part of a pattern.

Valkey's keys are made of digests and identifiers of fixed length alone; the tenant stands in
braces, so that a cluster holds everything of a tenant in one slot. A caller's key is only ever a
field of a hash, which may hold any bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from uuid import UUID, uuid5

from mnemic.errors import InvalidInput
from mnemic.model.normalise import digest
from mnemic.model.scope import Scope, ScopeId
from mnemic.store.working.faults import foreign

__all__ = [
    "GATE",
    "TASK",
    "ScopeKeys",
    "checked_key",
    "entry_id",
    "field_digest",
    "field_of_text",
    "instance_key",
    "is_key",
    "key_field",
    "key_of",
    "scope_keys",
    "text_of_field",
]

TASK = b"t"
GATE = b"g"  # in the hash of values: the scope is being restored
_NAMESPACE_BYTES = 8


@dataclass(frozen=True, slots=True)
class ScopeKeys:
    """The keys of one scope in Valkey: values, what is known of them, notes."""

    values: str
    heads: str
    notes: str


@lru_cache(maxsize=16_384)
def scope_keys(namespace: str, scope: Scope) -> ScopeKeys:
    """Three keys that no other namespace, tenant or scope has."""
    stem = f"mnemic:{_short(namespace)}:{{{scope.tenant.id.hex}}}:{scope.id.hex}"
    return ScopeKeys(values=f"{stem}:v", heads=f"{stem}:h", notes=f"{stem}:n")


def instance_key(namespace: str) -> str:
    """The key under which the store keeps a name of its own."""
    return f"mnemic:{_short(namespace)}:instance"


def _short(namespace: str) -> str:
    return blake2b(namespace.encode(), digest_size=_NAMESPACE_BYTES).hexdigest()


def checked_key(key: Any, *, bytes_max: int) -> bytes:
    """The field of a caller's key, any text of 1 to `bytes_max` bytes. Raises `InvalidInput`."""
    if not isinstance(key, str):
        raise InvalidInput(f"must be text, not {type(key).__name__}", field="key")
    if not key:
        raise InvalidInput("must not be empty", field="key")
    try:
        raw = key.encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput(
            f"holds a lone surrogate at character {fault.start}; remove it", field="key"
        ) from None
    if len(raw) > bytes_max:
        raise InvalidInput(f"is {len(raw)} bytes long; the most is {bytes_max}", field="key")
    return b"k" + raw


def key_field(key: str) -> bytes:
    """The field of a key that was checked before."""
    return b"k" + key.encode()


def is_key(field: bytes) -> bool:
    """Whether the field is a caller's key; the task state is none."""
    return field.startswith(b"k")


def key_of(field: bytes) -> str:
    """The caller's key of a field."""
    try:
        return field[1:].decode()
    except UnicodeDecodeError:
        raise foreign() from None


def text_of_field(field: bytes) -> str:
    r"""The field as PostgreSQL can hold it: NUL becomes `\0`, and a backslash is doubled.

    Empty for the task state, which no key is.
    """
    return field[1:].decode().replace("\\", "\\\\").replace("\x00", "\\0")


def field_of_text(text: str) -> bytes:
    """The field that `text_of_field` gave."""
    if not text:
        return TASK
    parts = text.split("\\\\")
    return key_field("\\".join(part.replace("\\0", "\x00") for part in parts))


def field_digest(field: bytes) -> bytes:
    """sha256 of the field, as its index in PostgreSQL."""
    return digest(field.decode())


def entry_id(scope: ScopeId, field: bytes) -> UUID:
    """The id of the entry's row: a function of scope and field."""
    return uuid5(scope, f"working;{field_digest(field).hex()}")
