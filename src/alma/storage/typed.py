"""ALMA's named methods, written once on the contract for every store."""
from __future__ import annotations
class TypedMemories: pass
