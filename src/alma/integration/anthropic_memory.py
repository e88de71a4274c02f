"""Anthropic's memory tool: the files of `/memories` as documents of ALMA, each with a history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from alma.errors import MissingDependencyError
from alma.integration.documents import Change, Document, Documents, Path, Reader

try:
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ModuleNotFoundError as exc:
    raise MissingDependencyError("anthropic", "anthropic") from exc

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["ALMAMemoryTool", "AsyncALMAMemoryTool"]

_ROOT = "/memories"
_MOST_LINES = 999_999
_WIDTH = len(str(_MOST_LINES))
_LONGEST_NAME = 255
# A directory has this size in listings, as on most file systems.
_DIRECTORY_SIZE = 4096
Answer = Change[str | ToolError]


class ALMAMemoryTool(BetaAbstractMemoryTool):
    """The memory tool of Claude: `client.beta.messages.run_tools(tools=[ALMAMemoryTool(memory)], ...)`.

    Each file is a memory of the project: it is found by its text, every edit is a version, and secrets are masked. What
    is deleted can be restored until a purge. Calls are answered as by the SDK's tool for a folder of files.
    """

    def __init__(
        self, alma: ALMA, *, user_id: str | None = None, agent: str | None = None, cache_control: Any = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = _Files(Documents(alma, "anthropic", "file", user_id=user_id, agent=agent))

    def view(self, command: Any) -> str:
        return self._files.view(command)

    def create(self, command: Any) -> str:
        return self._files.create(command)

    def str_replace(self, command: Any) -> str:
        return self._files.str_replace(command)

    def insert(self, command: Any) -> str:
        return self._files.insert(command)

    def delete(self, command: Any) -> str:
        return self._files.delete(command)

    def rename(self, command: Any) -> str:
        return self._files.rename(command)

    def clear_all_memory(self) -> str:
        return self._files.clear()


class AsyncALMAMemoryTool(BetaAsyncAbstractMemoryTool):
    """`ALMAMemoryTool` for `AsyncAnthropic`, which does not block the event loop."""

    def __init__(
        self, alma: ALMA, *, user_id: str | None = None, agent: str | None = None, cache_control: Any = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = _Files(Documents(alma, "anthropic", "file", user_id=user_id, agent=agent))

    async def view(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.view, command)

    async def create(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.create, command)

    async def str_replace(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.str_replace, command)

    async def insert(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.insert, command)

    async def delete(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.delete, command)

    async def rename(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.rename, command)

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self._files.clear)


class _Files:
    """The commands on the files and directories below the root.

    A directory exists while something is in it; one that is empty has a document of its own.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    # ------------------------------------------------------------------ commands

    def view(self, command: Any) -> str:
        path = _parts(command.path)

        def view(reader: Reader) -> str:
            text = _text(reader, path)
            if text is not None:
                return _numbered(command, text)
            if not _is_directory(reader, path):
                raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
            return _listing(command.path, _sizes(reader, path))

        return self._documents.read(view)

    def create(self, command: Any) -> str:
        path = _parts(command.path)

        def create(reader: Reader) -> Answer:
            if _exists(reader, path):
                raise ToolError(f"File {command.path} already exists")
            _require_no_file_above(reader, path, command.path)
            return Change(f"File created successfully at: {command.path}", [_file(path, command.file_text)])

        return self._change(create)

    def str_replace(self, command: Any) -> str:
        path, old = _parts(command.path), command.old_str

        def replace(reader: Reader) -> Answer:
            text = _require_text(reader, path, command.path)
            places = [*_places(text, old)]
            if not places:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if text.count(old) > 1:
                lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            changed = text.replace(old, command.new_str or "")
            return Change(_edited(changed, text.count("\n", 0, places[0])), [_file(path, changed)])

        return self._change(replace)

    def insert(self, command: Any) -> str:
        path, place = _parts(command.path), command.insert_line

        def insert(reader: Reader) -> Answer:
            lines = _require_text(reader, path, command.path).split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= place <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {place}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(place, command.insert_text.rstrip("\n"))
            changed = "\n".join(lines)
            changed += "" if changed.endswith("\n") else "\n"
            return Change(f"The file {command.path} has been edited.", [_file(path, changed)])

        return self._change(insert)

    def delete(self, command: Any) -> str:
        path = _parts(command.path)
        if not path:
            raise ToolError("Cannot delete the /memories directory itself")

        def delete(reader: Reader) -> Answer:
            gone = [*_below_or_at(reader, path)]
            if not gone:
                raise ToolError(f"The path {command.path} does not exist")
            return Change(f"Successfully deleted {command.path}", _left_empty(reader, path, gone), gone)

        return self._change(delete)

    def rename(self, command: Any) -> str:
        old, new = _parts(command.old_path), _parts(command.new_path)
        if not old:
            raise ToolError("Cannot rename the /memories directory itself")

        def rename(reader: Reader) -> Answer:
            if _exists(reader, new):
                raise ToolError(f"The destination {command.new_path} already exists")
            _require_no_file_above(reader, new, command.new_path)
            return _moved(reader, old, new, command)

        return self._change(rename)

    def clear(self) -> str:
        return self._change(lambda reader: Change("All memory cleared", [], reader.paths()))

    def _change(self, plan: Callable[[Reader], Answer]) -> str:
        answer = self._documents.change(plan)
        if isinstance(answer, ToolError):
            raise answer
        return answer


# ---------------------------------------------------------------------- paths


def _parts(path: str) -> Path:
    """The names of a path below the root."""
    if not path.startswith(_ROOT):
        raise ToolError(f"Path must start with /memories, got: {path}")
    # The root is in a folder that a path may pass through, but not leave.
    names = [_ROOT[1:]]
    for name in path[len(_ROOT) :].split("/"):
        if name == ".." and not names:
            raise ToolError(f"Path {path} would escape /memories directory")
        if name == "..":
            names.pop()
        elif name not in ("", "."):
            names.append(_checked(name, path))
    if names[:1] != [_ROOT[1:]]:
        raise ToolError(f"Path {path} would escape /memories directory")
    return tuple(names[1:])


def _checked(name: str, path: str) -> str:
    if "\x00" in name or len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        raise ToolError(f"The path {path} has a name with a NUL character or with more than {_LONGEST_NAME} bytes")
    return name


def _shown(path: Path) -> str:
    return "/".join((_ROOT, *path))


# ---------------------------------------------------------------------- what is there


def _text(reader: Reader, path: Path) -> str | None:
    """The text of the file at a path, or None where there is no file."""
    found = reader.get([path]).get(path) if path else None
    text: str | None = None if found is None else found.payload.get("text")
    return text


def _is_directory(reader: Reader, path: Path) -> bool:
    return not path or bool(reader.paths(path)) or (path in reader.get([path]) and _text(reader, path) is None)


def _exists(reader: Reader, path: Path) -> bool:
    return _text(reader, path) is not None or _is_directory(reader, path)


def _require_text(reader: Reader, path: Path, given: str) -> str:
    text = _text(reader, path)
    if text is not None:
        return text
    if _is_directory(reader, path):
        raise ToolError(f"The path {given} is not a file.")
    raise ToolError(f"The path {given} does not exist. Please provide a valid path.")


def _require_no_file_above(reader: Reader, path: Path, given: str) -> None:
    above = reader.get(path[:depth] for depth in range(1, len(path)))
    for each, found in above.items():
        if "text" in found.payload:
            raise ToolError(f"The path {given} cannot be created: {_shown(each)} is a file, not a directory")


def _below_or_at(reader: Reader, path: Path) -> Iterator[Path]:
    yield from reader.get([path])
    yield from reader.paths(path)


# ---------------------------------------------------------------------- what changes


def _file(path: Path, text: str) -> Document:
    if not _is_text(text):
        raise ToolError(f"The text for {_shown(path)} cannot be stored: it is not valid Unicode")
    return Document(path, {"text": text}, [text], title=_shown(path))


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _directory(path: Path) -> Document:
    return Document(path, {"directory": True}, [f"(empty directory {_shown(path)})"], embed=False)


def _left_empty(reader: Reader, path: Path, gone: Iterable[Path]) -> list[Document]:
    """The directory above a path, if nothing else is in it."""
    above = path[:-1]
    others = set(reader.paths(above)) - {*gone} if above else {path}
    return [] if others else [_directory(above)]


def _moved(reader: Reader, old: Path, new: Path, command: Any) -> Answer:
    """The file or directory at its new path; the directory for it is made in any case."""
    above = new[:-1]
    made = [] if not above or _is_directory(reader, above) else [_directory(above)]
    if new != old and new[: len(old)] == old and (made or _exists(reader, old)):
        return Change(ToolError(f"Cannot move {command.old_path} into itself"), made)
    moving = [*_below_or_at(reader, old)]
    if not moving:
        return Change(ToolError(f"The path {command.old_path} does not exist"), made)
    kept = reader.get(moving)
    placed = [_again((*new, *path[len(old) :]), each.payload) for path, each in kept.items()]
    filled = {document.path[:depth] for document in placed for depth in range(len(document.path))}
    empty = [document for document in _left_empty(reader, old, moving) if document.path not in filled]
    return Change(f"Successfully renamed {command.old_path} to {command.new_path}", [*placed, *empty], moving)


def _again(path: Path, payload: dict[str, Any]) -> Document:
    return _file(path, payload["text"]) if "text" in payload else _directory(path)


# ---------------------------------------------------------------------- answers


def _places(text: str, sought: str) -> Iterator[int]:
    """Where a text occurs, overlapping occurrences included."""
    place = text.find(sought)
    while place != -1:
        yield place
        place = text.find(sought, place + 1)


def _lines(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{str(number).rjust(_WIDTH)}\t{line}" for number, line in enumerate(lines, first))


def _edited(text: str, line: int) -> str:
    first = max(0, line - 2)
    said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
    return said + _lines(text.split("\n")[first : line + 3], first + 1)


def _numbered(command: Any, text: str) -> str:
    lines, first = text.split("\n"), 0
    if len(lines) > _MOST_LINES:
        raise ToolError(f"File {command.path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
    if command.view_range and len(command.view_range) == 2:
        start, end = command.view_range
        first = max(1, start) - 1
        lines = lines[first : len(lines) if end == -1 else end]
    return f"Here's the content of {command.path} with line numbers:\n" + _lines(lines, first + 1)


def _sizes(reader: Reader, folder: Path) -> dict[Path, int | None]:
    """The sizes of what is in a folder, two levels deep, by path from there; those of directories are None."""
    found: dict[Path, int | None] = {}
    for each in reader.within(folder):
        inside = each.path[len(folder) :]
        found |= {inside[:depth]: None for depth in range(1, min(len(inside), 3))}
        if len(inside) <= 2:
            found[inside] = len(each.payload["text"].encode()) if "text" in each.payload else None
    return {path: size for path, size in found.items() if not any(name.startswith(".") for name in path)}


def _listing(given: str, sizes: dict[Path, int | None]) -> str:
    header = f"Here're the files and directories up to 2 levels deep in {given}, excluding hidden items:"
    lines = [f"{_size(_DIRECTORY_SIZE)}\t{given}"]
    for path, size in sorted(sizes.items()):
        name = "/".join(path)
        lines.append(f"{_size(_DIRECTORY_SIZE)}\t{given}/{name}/" if size is None else f"{_size(size)}\t{given}/{name}")
    return "\n".join((header, *lines))


def _size(size: int) -> str:
    """A size as the SDK writes it: 0B, 512B, 1.5K."""
    unit, letters = 0, "BKMG"
    while size >= 1024 ** (unit + 1) and unit < len(letters) - 1:
        unit += 1
    scaled = size / 1024**unit
    return f"{int(scaled)}{letters[unit]}" if scaled == int(scaled) else f"{scaled:.1f}{letters[unit]}"
