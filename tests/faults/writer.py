"""The process that the fault tests kill: it writes to a store and says so after each write that returned."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count

from alma.errors import StorageError
from alma.model.learning import Heuristic
from alma.storage.base import StorageBackend
from tests.faults.records import EVERYWHERE, SHARED, a_heuristic, content_of, vector_of
from tests.faults.stores import mapped_index, opened, opener

ONE_MORE = {"occurrence_count": 1, "success_count": 1}
LARGEST_BATCH = 20
HEURISTICS_PER_AGENT = 40


class Writer:
    """Makes one random write after the other; its name is its seed and the beginning of the ids it gives."""

    def __init__(self, store: StorageBackend, name: str, afterwards: Callable[[], object] = lambda: None) -> None:
        self._store = store
        self._afterwards = afterwards
        self._name = name
        self._random = random.Random(name)
        self._written = 0
        self._revisions: dict[str, int] = {}

    def write_forever(self) -> None:
        """Write and acknowledge until killed."""
        steps: list[Callable[[], str]] = [self._save, self._save_batch, self._save_and_delete]
        steps += [self._save, self._update, self._update, self._increment, self._increment_shared]
        while True:
            began = time.monotonic()
            try:
                said = self._random.choice(steps)()
                self._afterwards()
            except StorageError as error:
                # Whether it was stored is unknown, so what was known of the records is forgotten.
                self._revisions.clear()
                said = f"failed {type(error).__name__}: {error}"
            say(f"{began:.6f} {said}")

    def _save(self) -> str:
        key = self._store.save(self._new())
        self._revisions[key] = 0
        return f"saved {key}"

    def _save_batch(self) -> str:
        keys = [self._new_key() for _ in range(self._random.randint(2, LARGEST_BATCH))]
        self._store.save_many(a_heuristic(key, self._agent, batch=keys) for key in keys)
        self._revisions.update(dict.fromkeys(keys, 0))
        return f"saved {' '.join(keys)}"

    def _update(self) -> str:
        if not self._revisions:
            return self._save()
        key = self._random.choice(list(self._revisions))
        revision = self._revisions[key] + 1
        self._store.update(Heuristic, key, content_of(key, revision), EVERYWHERE)
        self._revisions[key] = revision
        return f"updated {key} {revision}"

    def _increment(self) -> str:
        if not self._revisions:
            return self._save()
        return self._incremented(self._random.choice(list(self._revisions)))

    def _increment_shared(self) -> str:
        return self._incremented(SHARED)

    def _incremented(self, key: str) -> str:
        self._store.increment(Heuristic, key, ONE_MORE, EVERYWHERE)
        return f"incremented {key}"

    def _save_and_delete(self) -> str:
        """Only the deletion is acknowledged, as a kill may come between the two."""
        key = self._store.save(self._new())
        self._store.delete(Heuristic, [key], EVERYWHERE)
        return f"deleted {key}"

    def _new(self) -> Heuristic:
        return a_heuristic(self._new_key(), self._agent)

    @property
    def _agent(self) -> str:
        """Each has few heuristics, so that searching for all of them, each among its agent's, does not take long."""
        return f"{self._name}a{self._written // HEURISTICS_PER_AGENT}"

    def _new_key(self) -> str:
        self._written += 1
        return f"{self._name}n{self._written}"


def write_forever(address: str, name: str) -> None:
    """Open the store when told to, then write random things to it until killed."""
    open_store = opener(address)
    say("ready")
    await_go()
    with open_store() as store:
        Writer(store, name).write_forever()


def write_a_number(address: str, name: str, number: str) -> None:
    """Open the store when told to, then when told to write that often: a new heuristic, the shared one, and so on."""
    open_store = opener(address)
    say("ready")
    await_go()
    with open_store() as store:
        say("opened")
        await_go()
        for i in range(int(number)):
            if i % 2:
                store.increment(Heuristic, SHARED, ONE_MORE, EVERYWHERE)
            else:
                store.save(a_heuristic(f"{name}n{i}", name))


def index_forever(address: str, name: str) -> None:
    """Open the store and an index when told to, then write and search until killed, so that its files always change."""
    with opened(address) as store, closing(mapped_index(store, address)) as index:
        say("ready")
        await_go()
        Writer(store, name, lambda: index.search(Heuristic, vector_of(SHARED, 0), EVERYWHERE)).write_forever()


def search_when_told(address: str) -> None:
    """Again and again: when told to, say what an index finds nearest to the parent's next vector, and save one."""
    with opened(address) as store, closing(mapped_index(store, address)) as index:
        for i in count():
            await_go()
            (nearest,) = index.search(Heuristic, vector_of(f"parent{i}", 0), EVERYWHERE, limit=1)
            store.save(a_heuristic(f"child{i}", "child"))
            say(nearest.record_id)


def hold_a_transaction(address: str) -> None:
    """Change the shared heuristic and save another in a transaction that is committed when told to."""
    with opened(address) as store:
        with store.transaction() as tx:
            tx.update(Heuristic, SHARED, content_of(SHARED, 1), EVERYWHERE)
            tx.save(a_heuristic("fresh"))
            say("holding")
            await_go()
        say("committed")


def reembed_until_killed(address: str) -> None:
    """Move the store to another model, saying after each batch how far that is."""
    from alma.embeddings.mock import MockEmbedder
    from alma.sync.reembed import reembed

    with opened(address) as store:
        reembed(store, MockEmbedder(8), lambda progress: say(f"{progress.done} of {progress.total}"), batch_size=10)


def say(line: str) -> None:
    """Tell the parent; a short line reaches the pipe in one piece or not at all."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def await_go() -> None:
    """Wait for the parent; where it is gone, so is the reason to go on."""
    if sys.stdin.readline() != "go\n":
        sys.exit(1)


COMMANDS: dict[str, Callable[..., None]] = {
    "write-forever": write_forever,
    "write-a-number": write_a_number,
    "index-forever": index_forever,
    "search-when-told": search_when_told,
    "hold-a-transaction": hold_a_transaction,
    "reembed": reembed_until_killed,
}

if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    COMMANDS[command](*arguments)
