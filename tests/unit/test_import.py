"""`import alma` is fast and loads no driver and no third-party package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import alma
from alma import errors
from tests.support.unmeasured import unmeasured


def _fresh(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=unmeasured())
    return run.stdout


def test_importing_alma_and_its_records_loads_no_driver() -> None:
    heavy = "('numpy', 'sqlalchemy', 'psycopg', 'typer', 'rich', 'sqlite3')"
    code = f"import alma, sys; alma.Heuristic, alma.Scope; print([m for m in {heavy} if m in sys.modules])"
    assert _fresh(code).strip() == "[]"


def test_opening_writing_and_asking_a_store_loads_no_sqlalchemy(tmp_path: Path) -> None:
    code = f"""
import sys
from alma import Heuristic, Scope
from alma.storage.sqlite_local import SQLiteStorage
with SQLiteStorage({str(tmp_path / "alma.db")!r}) as store:
    store.save(Heuristic(agent="a", project_id="p", condition="forms", strategy="validate"))
    assert store.search_text(Heuristic, "form", Scope(project_id="p"))
print("sqlalchemy" in sys.modules)
"""
    assert _fresh(code).strip() == "False"


def test_importing_alma_takes_less_than_a_quarter_of_a_second() -> None:
    code = "import time; t = time.process_time(); import alma; print(time.process_time() - t)"
    assert min(float(_fresh(code)) for _ in range(3)) < 0.25


def test_every_error_is_exported() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ALMAError)]
    assert {kind.__name__ for kind in kinds} <= set(alma.__all__)


def test_every_exported_name_exists() -> None:
    for name in alma.__all__:
        assert getattr(alma, name) is not None
    assert set(alma.__all__) <= set(dir(alma))
