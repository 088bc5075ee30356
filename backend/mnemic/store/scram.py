"""The verifier that PostgreSQL keeps in place of a password (RFC 5802, RFC 7677).

Made here, so that a password never travels in a statement, which the server may log.
"""

from __future__ import annotations

import hmac
import stringprep
import unicodedata
from base64 import b64encode
from hashlib import pbkdf2_hmac, sha256

__all__ = ["scram_verifier"]

_ITERATIONS = 4_096  # the server's own default; a client repeats them at each login


def scram_verifier(password: str, *, salt: bytes) -> str:
    """`SCRAM-SHA-256$4096:salt$StoredKey:ServerKey`, as `ALTER ROLE … PASSWORD` takes it."""
    salted = pbkdf2_hmac("sha256", _prepared(password), salt, _ITERATIONS)
    stored_key = sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    shown = [b64encode(part).decode() for part in (salt, stored_key, server_key)]
    return f"SCRAM-SHA-256${_ITERATIONS}:{shown[0]}${shown[1]}:{shown[2]}"


def _prepared(password: str) -> bytes:
    """SASLprep (RFC 4013); as the server does, the bytes as given where it does not apply."""
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in password
        if not stringprep.in_table_b1(character)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    if not prepared or any(map(_is_prohibited, prepared)) or _breaks_bidi(prepared):
        return password.encode()
    return prepared.encode()


def _is_prohibited(character: str) -> bool:
    return any(
        table(character)
        for table in (
            stringprep.in_table_a1,
            stringprep.in_table_c12,
            stringprep.in_table_c21_c22,
            stringprep.in_table_c3,
            stringprep.in_table_c4,
            stringprep.in_table_c5,
            stringprep.in_table_c6,
            stringprep.in_table_c7,
            stringprep.in_table_c8,
            stringprep.in_table_c9,
        )
    )


def _breaks_bidi(prepared: str) -> bool:
    if not any(map(stringprep.in_table_d1, prepared)):
        return False
    ends_right = stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])
    return not ends_right or any(map(stringprep.in_table_d2, prepared))
