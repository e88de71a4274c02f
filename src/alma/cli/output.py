"""What commands print: a table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_rows(columns: Sequence[str], rows: Sequence[Mapping[str, object]], as_json: bool, missing: str = "") -> None:
    """The rows under their columns; `missing` stands for what has no value."""
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table(*columns)
    for row in rows:
        # As text: square brackets in what is stored are no markup.
        table.add_row(*(missing if row[name] is None else Text(str(row[name])) for name in columns))
    Console().print(table)
