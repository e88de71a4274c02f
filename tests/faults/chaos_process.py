"""The writer of the chaos test: writes records that the engines follow, and says what was acknowledged."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from alma.bootstrap import store_of_file
from alma.errors import StorageError, UniquenessError
from alma.model.learning import Heuristic
from alma.model.memory import Memory, MemoryRelationship
from alma.model.scope import Scope
from alma.model.workspace import Project, User
from alma.storage.base import StorageBackend

EVERYWHERE = Scope.everywhere()
MOST = 60


class Writer:
    """Makes one random write after the other; its name is its seed and the beginning of the ids it gives."""

    def __init__(self, store: StorageBackend, name: str) -> None:
        self._store = store
        self._name = name
        self._random = random.Random(name)
        self._made = 0
        self._revisions: dict[str, int] = {}
        self._user, self._project = self._scope()

    def _scope(self) -> tuple[str, str]:
        user = User(username=self._name)
        project = Project(name=self._name, user_id=user.id)
        self._store.save_many([user, project])
        return user.id, project.id

    def write_forever(self, pause_seconds: float) -> None:
        """Write and acknowledge until killed."""
        steps: list[Callable[[], str]] = [self._save, self._save_batch, self._update, self._update, self._delete]
        steps += [self._relate, self._learn]
        while True:
            try:
                say(self._random.choice(steps)())
            except StorageError as error:
                say(f"failed {type(error).__name__}: {error}")
            time.sleep(pause_seconds)

    def _save(self) -> str:
        if len(self._revisions) > MOST:
            return self._delete()
        memory = self._memory()
        self._store.save(memory)
        self._revisions[memory.id] = 0
        return f"saved {memory.id}"

    def _save_batch(self) -> str:
        if len(self._revisions) > MOST:
            return self._delete()
        batch = [self._memory() for _ in range(self._random.randint(2, 12))]
        self._store.save_many(batch)
        self._revisions.update({each.id: 0 for each in batch})
        return f"saved {' '.join(each.id for each in batch)}"

    def _update(self) -> str:
        if not self._revisions:
            return self._save()
        key = self._random.choice(list(self._revisions))
        # Before it is tried: whether a failed one was stored is unknown.
        self._revisions[key] += 1
        revision = self._revisions[key]
        self._store.update(Memory, key, {"title": str(revision), "embedding": self._vector()}, EVERYWHERE)
        return f"updated {key} {revision}"

    def _delete(self) -> str:
        if not self._revisions:
            return self._save()
        key = self._random.choice(list(self._revisions))
        self._revisions.pop(key)
        self._store.delete(Memory, [key], EVERYWHERE)
        return f"deleted {key}"

    def _relate(self) -> str:
        if len(self._revisions) < 2:
            return self._save()
        source, target = self._random.sample(list(self._revisions), 2)
        kind = self._random.choice(["relates_to", "builds_on", "contradicts", "supersedes"])
        link = MemoryRelationship(from_memory_id=source, to_memory_id=target, relationship_type=kind)
        with suppress(UniquenessError):
            self._store.save(link)
        return f"related {link.id}"

    def _learn(self) -> str:
        rule = Heuristic(
            id=self._key(), agent=self._name, project_id=self._project, condition="a form", strategy=f"try {self._made}"
        )
        self._store.save(rule.replace(embedding=self._vector()))
        return f"learned {rule.id}"

    def _memory(self) -> Memory:
        return Memory(
            id=self._key(),
            user_id=self._user,
            project_id=self._project,
            title="0",
            content=f"{self._name} wrote {self._made}",
            layer_project=True,
            embedding=self._vector(),
        )

    def _key(self) -> str:
        self._made += 1
        return f"{self._name}n{self._made}"

    def _vector(self) -> list[float]:
        return [self._random.gauss(0, 1) for _ in range(self._store.embedding_dim)]


def say(line: str) -> None:
    """Tell the parent; a short line reaches the pipe in one piece or not at all."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Open the configured store and write until killed."""
    config, name, pause_seconds = sys.argv[1:]
    store, _ = store_of_file(config)
    Writer(store, name).write_forever(float(pause_seconds))


if __name__ == "__main__":
    main()
