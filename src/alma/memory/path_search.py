"""Find paths between memories in the relationships that a traversal has reached."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from alma.model.memory import MemoryRelationship
from alma.model.relations import SYMMETRIC, seen_from
from alma.storage.base import Direction

# Dense graphs have too many paths to enumerate.
_MAX_STEPS = 50_000


@dataclass(frozen=True, slots=True)
class Path:
    """A path between two memories: the memories, and the relation of each step."""

    memory_ids: tuple[str, ...]
    relations: tuple[str, ...]
    strength: float

    def __len__(self) -> int:
        return len(self.relations)

    def __str__(self) -> str:
        steps = zip(self.relations, self.memory_ids[1:], strict=True)
        return self.memory_ids[0] + "".join(f" –{relation}→ {memory}" for relation, memory in steps)


class Graph:
    """Relationships that can be followed in one direction or both; parallel ones count as the strongest."""

    def __init__(self, edges: Iterable[MemoryRelationship], direction: Direction) -> None:
        self._steps: dict[str, dict[str, MemoryRelationship]] = defaultdict(dict)
        for edge in sorted(edges, key=lambda each: (each.strength, each.relationship_type)):
            either_way = edge.relationship_type in SYMMETRIC
            if direction != "in" or either_way:
                self._steps[edge.from_memory_id][edge.to_memory_id] = edge
            if direction != "out" or either_way:
                self._steps[edge.to_memory_id][edge.from_memory_id] = edge

    def step_to(self, memory_id: str, depths: Mapping[str, int]) -> tuple[str, MemoryRelationship]:
        """The strongest step to a memory from one that is closer to the start."""
        nearer = (
            (-self._steps[each][memory_id].strength, each)
            for each in self._steps
            if memory_id in self._steps[each] and depths.get(each) == depths[memory_id] - 1
        )
        before = min(nearer)[1]
        return before, self._steps[before][memory_id]

    def paths(self, start: str, end: str, left: Mapping[str, int], max_depth: int, limit: int) -> list[Path]:
        """The simple paths, shortest first; `left` is the distance of each memory to the end."""
        found: list[Path] = []
        self._steps_tried = 0
        if start == end or start not in left:
            return found
        for length in range(left[start], max_depth + 1):
            for path in self._paths_of_length([start], end, left, length):
                found.append(self._path(path))
                if len(found) == limit:
                    return found
        return found

    def _paths_of_length(self, path: list[str], end: str, left: Mapping[str, int], length: int) -> Iterator[list[str]]:
        """The paths of exactly this many more steps, trying only steps from which the end can be reached."""
        for following in sorted(self._steps.get(path[-1], ())):
            self._steps_tried += 1
            if self._steps_tried > _MAX_STEPS:
                return
            if following == end:
                if length == 1:
                    yield [*path, end]
            elif following not in path and left.get(following, math.inf) < length:
                yield from self._paths_of_length([*path, following], end, left, length - 1)

    def _path(self, path: list[str]) -> Path:
        edges = [self._steps[one][other] for one, other in pairwise(path)]
        relations = tuple(seen_from(edge, one)[0] for edge, one in zip(edges, path, strict=False))
        return Path(tuple(path), relations, round(math.prod(edge.strength for edge in edges), 4))
