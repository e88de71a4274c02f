"""The search for memories that say the same, page by page, so that any number of them fits into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from alma.consolidation.merging import Kind, MergedGroup
from alma.judge.base import Judge, normalised
from alma.learning.lessons import NOT_THE_SAME
from alma.learning.strategies import is_prose
from alma.model.query import In
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.storage.nearest import cosines
from alma.vectors.base import VectorIndex

_PAGE = 200
_LOOKED_AT, _MOST_LOOKED_AT = 16, 1024
# Stricter than what learning counts together: there a mistake costs a count, here it hides a memory.
_SURE = 0.85
# So many of those that are near a memory, and not in the same words, are judged: the nearest.
_JUDGED = 16


@dataclass(frozen=True, slots=True)
class Group:
    """A memory, others that say the same, and why each of those does."""

    kept: Record
    others: Sequence[Record]
    why: dict[str, str]

    def shown(self) -> MergedGroup:
        kept = self.kept
        return MergedGroup(
            kept.spec.kind, str(kept.key), kept.text(), {str(o.key): self.why[str(o.key)] for o in self.others}
        )


class Search:
    """Goes through the memories of a kind, page by page, and finds those that say the same as an earlier one.

    Every member of a group says the same as the one that is kept: similarity is not handed on from one to the next.
    """

    def __init__(
        self,
        storage: StorageBackend,
        index: VectorIndex,
        judge: Judge,
        kind: Kind,
        scope: Scope,
        threshold: float,
    ) -> None:
        self._storage = storage
        self._judge = judge
        self._index = index
        self._kind = kind
        self._scope = scope
        self._threshold = threshold
        self._taken: set[str] = set()

    def groups(self) -> Iterator[Group]:
        for record in self._storage.iterate(self._kind.cls, self._scope, page_size=_PAGE):
            if record.key in self._taken:
                continue
            alike = self._alike(record)
            if not alike:
                continue
            group = self._group([record, *alike])
            if group.others:
                self._taken.update(str(other.key) for other in group.others)
                yield group

    def _group(self, members: Sequence[Record]) -> Group:
        kept = max(members, key=_worth)
        others = {str(each.key): each for each in members if each is not kept and not _are_separated(kept, each)}
        near = {key: self._cosine(kept, each) for key, each in others.items()}
        why = self._why(self._kind.texts(kept), {key: self._kind.texts(each) for key, each in others.items()}, near)
        return Group(kept, [others[key] for key in why], why)

    def _alike(self, record: Record) -> list[Record]:
        """The later memories that say the same as this one."""
        looked_at = _LOOKED_AT
        while True:
            alike = self._matching(record, self._near(record, looked_at))
            if len(alike) < looked_at // 2 or looked_at >= _MOST_LOOKED_AT:
                # Earlier ones were compared with this one when it was their turn.
                later = [key for key in alike if key > record.key and key not in self._taken]
                return self._storage.get_many(self._kind.cls, later, self._scope) if later else []
            looked_at *= 4

    def _near(self, record: Record, limit: int) -> dict[str, float | None]:
        """The ids of what may say the same, by meaning with its cosine or by words alone."""
        cls = self._kind.cls
        near: dict[str, float | None] = {
            key: None
            for key, _ in self._storage.matching_ids(cls, record.text(), self._scope, limit=limit, exact=False)
        }
        vector = getattr(record, "embedding", None)
        if vector is not None:
            found = self._index.search(cls, vector, self._scope, limit=limit)
            near |= {each.record_id: each.cosine for each in found if each.cosine >= self._threshold}
        near.pop(record.key, None)
        return near

    def _matching(self, record: Record, near: Mapping[str, float | None]) -> list[str]:
        """Those of them that do; only their texts are read, as most do not."""
        if not near:
            return []
        kind, key = self._kind, self._kind.cls.spec.key
        owner, texts, width = kind.owner(record), kind.texts(record), len(kind.owners)
        rows = self._storage.values(kind.cls, (key, *kind.owners, *kind.statements), self._scope, In(key, tuple(near)))
        others = {row[0]: row[1 + width :] for row in rows if row[1 : 1 + width] == owner}
        return list(self._why(texts, others, near))

    def _why(
        self, mine: Sequence[str], others: Mapping[str, Sequence[str]], near: Mapping[str, float | None]
    ) -> dict[str, str]:
        """Those that say the same, each with the reason; by meaning only where the vectors are near as well."""
        why = {key: "the same words" for key, theirs in others.items() if _same_words(mine, theirs)}
        left = [
            (cosine, key)
            for key, theirs in others.items()
            if key not in why and (cosine := near[key]) is not None and all(map(is_prose, (*mine, *theirs)))
        ]
        likely = [key for _, key in sorted(left, reverse=True)[:_JUDGED]]
        pairs = [pair for key in likely for pair in zip(mine, others[key], strict=True)]
        verdicts = self._judge.compare(pairs) if pairs else []
        for place, key in enumerate(likely):
            found = verdicts[place * len(mine) : (place + 1) * len(mine)]
            sure = min(verdict["same"] for verdict in found)
            if sure >= _SURE:
                why[key] = f"judged the same with {sure:.0%}, meaning {near[key]:.2f}"
        return why

    def _cosine(self, one: Record, other: Record) -> float | None:
        """The cosine of two memories, if it is high enough to count."""
        mine, theirs = getattr(one, "embedding", None), getattr(other, "embedding", None)
        if mine is None or theirs is None:
            return None
        cosine = cosines(mine, [theirs.to_bytes()])[0]
        return cosine if cosine >= self._threshold else None


def _same_words(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    return [normalised(text) for text in mine] == [normalised(text) for text in theirs]


def _are_separated(one: Record, other: Record) -> bool:
    """Whether somebody said that these rules are not the same."""
    return any(
        normalised(getattr(theirs, "strategy", "")) in getattr(ours, "metadata", {}).get(NOT_THE_SAME, ())
        for ours, theirs in ((one, other), (other, one))
    )


def _worth(record: Record) -> tuple[float, float, float, str]:
    """The memory that should stay: with most evidence, most trusted, best told, and of equal ones always the same."""
    return (
        getattr(record, "occurrence_count", 0),
        getattr(record, "confidence", 0.0),
        -len(record.text()),
        str(record.key),
    )
