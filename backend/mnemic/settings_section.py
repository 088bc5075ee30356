"""What every section of the settings is: frozen, and of known names alone."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Section"]


class Section(BaseModel):
    """A part of the settings that what it is about is handed."""

    model_config = ConfigDict(frozen=True, extra="forbid")
