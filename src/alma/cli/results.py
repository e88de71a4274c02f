"""Print the results of operations: the prompt, a sentence, a card or a table; --json prints everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from alma.cli.options import quoted
from alma.cli.output import cell, console, say, show_card, show_table, warn
from alma.operations.base import Operation

Json = Mapping[str, Any]
Printer = Callable[[Json, Json], None]

# The most informative fields, in order of priority.
_IDS = ("id", "memory_id", "record_id", "key")
_TEXTS = (
    "content",
    "text",
    "strategy",
    "fact",
    "preference",
    "pattern",
    "task_description",
    "name",
    "title",
    "memory",
    "description",
    "summary",
    "value",
)
_FACTS = (
    "score",
    "success",
    "status",
    "memory_type",
    "kind",
    "type",
    "tags",
    "strategy_used",
    "confidence",
    "expected",
    "tried",
    "succeeded",
    "occurrence_count",
    "reason",
    "why",
)
_TIMES = ("created_at", "updated_at", "started_at", "timestamp", "recorded_at", "archived_at", "at")
# Rows without these fields are useless; if they do not fit, rows are printed as cards.
_RELATION_ENDS = ("source_id", "target_id", "from_memory_id", "to_memory_id", "relation_type", "memory_ids")
_NOISE = frozenset(
    (
        "embedding",
        "metadata",
        "hash",
        "content_json",
        "context_json",
        "project_id",
        "lesson_id",
        "outcome_ids",
        "heuristic_ids",
    )
)
_TEXT_WIDTH, _FACT_WIDTH, _BETWEEN = 28, 24, 3
_LONGEST_TEXT = 160
_NEXT = "next_cursor"
_KINDS = (
    "heuristics",
    "anti_patterns",
    "preferences",
    "domain_knowledge",
    "outcomes",
    "memories",
    "instructions",
)


def show_result(operation: Operation[Any, Any], result: Json, request: Json) -> None:
    """Print the result of an operation."""
    for said in ("degraded", "hint"):
        if result.get(said):
            warn(str(result[said]))
    _PRINTERS.get(operation.name, _print_any)(result, request)


def is_failed(operation: Operation[Any, Any], result: Json) -> bool:
    """Whether a result says that something is wrong, so that the exit code is 1."""
    return operation.name in _FAILED and _FAILED[operation.name](result)


# ---------------------------------------------------------------------- before and after a task


def _print_retrieved(result: Json, request: Json) -> None:
    if not result["prompt"] and result.get("stable_block") is not None:
        say("Nothing that this session was not shown already is relevant to this task.")
    elif not result["total_items"]:
        say("No relevant memories are stored for this task yet.")
    else:
        say(result["prompt"])
    if result.get("retrieval_id"):
        say(f"retrieval_id: {result['retrieval_id']}")
    if result.get("explanations"):
        say("")
        _print_explanations(result)
    _print_why_not(result, request)


def _print_why_not(result: Json, request: Json) -> None:
    if request.get("why_not"):
        dropped = result.get("why_not")
        say(f"{request['why_not']}: " + (f"{dropped['stage']}: {dropped['reason']}" if dropped else "it is there"))


def _print_explanations(result: Json) -> None:
    texts = {record["id"]: _text_of(record) for kind in _KINDS for record in result.get(kind, ())}
    say("Why these:")
    for each in result["explanations"]:
        made_of = " + ".join(f"{value:.3f} {name}" for name, value in each["terms"].items())
        say(f"\n{each['score']:.3f}  {each['kind']} {each['id']}: {cell(texts.get(each['id'], ''), longest=200)}")
        say(f"       = {made_of or 'nothing'}; found by {cell(each.get('found_by', ()))}")
        for note in each.get("notes", ()):
            say(f"       {note}")


def _print_learned(result: Json, request: Json) -> None:
    outcome = result["outcome"]
    say(f"Learned: {'success' if outcome['success'] else 'failure'} with “{outcome['strategy_used']}”")
    lesson, avoided = result.get("heuristic"), result.get("anti_pattern")
    if lesson:
        trust = (
            f"{lesson['success_count']} of {lesson['occurrence_count']} worked, confidence {lesson['confidence']:.0%}"
        )
        say(f"Lesson: {lesson['strategy']} ({trust})")
    if avoided:
        say(f"To avoid: {avoided['pattern']} (failed {avoided['occurrence_count']} times)")
    if not lesson and not avoided:
        say("No lesson yet: that takes more repetitions of the same strategy.")
    for note in result.get("notes", ()):
        say(f"Note: {note}")


def _print_recommended(result: Json, request: Json) -> None:
    if result.get("strategy") is None:
        say(f"No recommendation: {result['reason']}.")
    else:
        say(f"Use: {result['strategy']} ({result['support']}: {result['reason']})")
    if result["ranked"]:
        show_table(*_as_table(result["ranked"]), as_json=False)


# ---------------------------------------------------------------------- memories


def _print_remembered(result: Json, request: Json) -> None:
    memory = result["memory"]
    layers = [name.removeprefix("layer_") for name in memory if name.startswith("layer_") and memory[name]]
    kind = f"{memory.get('memory_type') or 'memory'}, importance {memory.get('importance_score', 0):.2g}"
    say(f"Remembered {memory['id']} ({kind}{', ' + ' and '.join(layers) if layers else ''})")


def _print_hits(result: Json, request: Json) -> None:
    if not result["hits"]:
        say("Nothing was found.")
    for number, hit in enumerate(result["hits"], 1):
        memory = hit["memory"]
        title = f"{memory['title']}: " if memory.get("title") else ""
        facts = [memory.get("memory_type"), *memory.get("tags", ()), cell(memory.get("created_at"))[:10]]
        say(f"{number}. {title}{cell(memory['content'])}")
        say(f"   {memory['id']} · {' · '.join(str(f) for f in facts if f)} · {hit['why']}")
    _print_why_not(result, request)


def _print_context(result: Json, request: Json) -> None:
    say(result["prompt"] or "No relevant memories are stored yet.")
    if result.get("left_out"):
        warn(f"{result['left_out']} more did not fit; increase --max-tokens")


def _print_stats(result: Json, request: Json) -> None:
    whose = f", agent {result['agent']}" if result.get("agent") else ""
    counts = {name: value for name, value in result["counts"].items() if name.endswith("_count")}
    # The documented total counts learned memories only.
    counts["total_learned_count"] = counts.pop("total_count", 0)
    rows = [{"kind": name.removesuffix("_count").replace("_", " "), "memories": n} for name, n in counts.items()]
    show_table(("kind", "memories"), rows, as_json=False, title=cell(f"Project {result['project_id']}{whose}"))


def _print_forgotten(result: Json, request: Json) -> None:
    items = result.get("items") or ()
    if items:
        show_table(*_as_table(items), as_json=False)
    if result.get("dry_run"):
        say(f"{result['forgotten']} would be archived; nothing was changed")
    else:
        back = (
            "; list them with  alma learning list-archived, restore them with  alma restore ID …"
            if result["forgotten"]
            else ""
        )
        say(f"{result['forgotten']} forgotten{back}")


def _print_purged(result: Json, request: Json) -> None:
    say(f"{result['purged']} deleted for good")


# ---------------------------------------------------------------------- engines beside the store


def _print_engines(result: Json, request: Json) -> None:
    rows = [
        {**each, "last_verified": _last_verified(each.get("verified")), "problem": _problem(each)}
        for each in result["engines"]
    ]
    if not rows:
        say("No engine is configured beside the store.")
    else:
        show_table(("engine", "state", "pending", "parked", "lag_seconds", "last_verified", "problem"), rows, False)


def _problem(engine: Json) -> str | None:
    said: str | None = engine.get("problem") or engine.get("parked_error")
    return said


def _last_verified(verified: Json | None) -> str:
    if verified is None:
        return "never"
    result = "consistent" if verified["is_consistent"] else f"{verified['issues']:,} issue(s)"
    return f"{cell(verified['at'].partition('.')[0] + 'Z')}, {result}"


def _print_runs(result: Json, request: Json) -> None:
    for each in result["engines"]:
        _print_run(each, request)


def _print_run(result: Json, request: Json) -> None:
    left = [f"{result[name]:,} {what}" for name, what in _LEFT if result[name]]
    say(f"{result['engine']}: {_number(result['applied'], 'record')} applied{''.join(f', {each}' for each in left)}")
    if result.get("problem"):
        warn(f"{result['engine']}: {result['problem']}")
    if result["parked"]:
        say(f"  alma sync status  shows why, and  alma sync retry-parked --engine {result['engine']}  tries again")


_LEFT = (("failed", "failed"), ("pending", "still waiting"), ("parked", "parked"))


def _print_verified(result: Json, request: Json) -> None:
    for each in result["engines"]:
        found = [f"{number:,} {name}" for name, number in each["differences"].items()]
        found += [f"{each['parked']:,} parked"] if each["parked"] else []
        waits = f" ({each['behind']:,} differ because their change still waits)" if each["behind"] else ""
        verdict = ", ".join(found) or ("consistent" if each["is_consistent"] else "not verified")
        say(f"{each['engine']}: {verdict}; {_number(each['checked'], 'record')} checked{waits}")
        if each.get("problem"):
            warn(f"{each['engine']}: {each['problem']}")
    if result["issues"]:
        show_table(("engine", "kind", "record_id", "difference", "details"), result["issues"], False)
        say("repair them with  alma sync repair")


def _print_repaired(result: Json, request: Json) -> None:
    if result["success"] and not result["repaired"] and not result["problems"]:
        say("nothing differs: nothing to repair")
    else:
        say(f"{_number(result['repaired'], 'issue')} repaired, {len(result['remaining']):,} remaining")
    if result["remaining"]:
        show_table(("engine", "kind", "record_id", "difference", "details"), result["remaining"], False)
    for engine, problem in result["problems"].items():
        warn(f"{engine}: {problem}")


def _number(number: int, of: str) -> str:
    return f"{number:,} {of}{'' if number == 1 else 's'}"


# ---------------------------------------------------------------------- other results


def _print_any(result: Json, request: Json) -> None:
    """Scalars as a card, records as cards, lists as tables."""
    facts = {
        name: value for name, value in result.items() if not _is_record(value) and not _is_list(value) and name != _NEXT
    }
    if isinstance(result.get("prompt"), str):
        say(result["prompt"])
        return
    if facts:
        show_card({name: value for name, value in facts.items() if value not in ("", {})})
    for name, value in result.items():
        if _is_record(value):
            show_card({key: each for key, each in value.items() if _is_informative(key, each)}, name.replace("_", " "))
        elif _is_list(value):
            _list(name, value)
    if not result:
        say("Nothing.")
    if result.get(_NEXT):
        say(f"more with  --cursor {quoted(result[_NEXT])}")


def _list(name: str, value: Sequence[Any]) -> None:
    title = name.replace("_", " ")
    if not value:
        say(f"{title}: none")
    elif all(isinstance(each, Mapping) for each in value):
        show_table(*_as_table(value), as_json=False, title=title)
    else:
        say(f"{title}:")
        for each in value:
            say(f"  {cell(each)}")


def _as_table(rows: Sequence[Json]) -> tuple[list[str], list[Json]]:
    """The most informative columns that fit on the screen, and the rows; nested records become id and text."""
    flat = [_flat(row) for row in rows]
    filled = dict.fromkeys(name for row in flat for name, value in row.items() if _is_informative(name, value))
    first = [name for names in (_IDS, _RELATION_ENDS) for name in names if name in filled]
    wanted = [name for names in (_TEXTS[:7], _FACTS, _TIMES[:1], _TEXTS, _TIMES) for name in names if name in filled]
    room = console().width
    if sum(_BETWEEN + _width(name, flat) for name in first) > room:
        return list(filled), flat
    chosen: list[str] = []
    for name in dict.fromkeys([*first, *wanted, *filled]):
        needed = _BETWEEN + _width(name, flat)
        if needed <= room or not chosen:
            chosen.append(name)
            room -= needed
    return [name for name in dict.fromkeys([*_IDS, *_RELATION_ENDS, *_TEXTS, *filled]) if name in chosen], flat


def _flat(row: Json) -> Json:
    made: dict[str, Any] = {}
    for name, value in row.items():
        if not _is_record(value):
            made[name] = _shortened(value)
            continue
        if "id" in value:
            made.setdefault(f"{name}_id", value["id"])
        made[name] = _shortened(_text_of(value))
    return made


def _width(name: str, rows: Sequence[Json]) -> int:
    longest = max(len(name), *(len(cell(row.get(name))) for row in rows))
    return (
        longest
        if name in _IDS or name in _RELATION_ENDS
        else min(longest, _TEXT_WIDTH if name in _TEXTS else _FACT_WIDTH)
    )


def _shortened(value: Any) -> Any:
    return cell(value, longest=_LONGEST_TEXT) if isinstance(value, str) else value


def _is_informative(name: str, value: object) -> bool:
    if value is False and name.startswith(("layer_", "is_")):
        return False
    return name not in _NOISE and value not in (None, "", [], {}, ())


def _is_record(value: object) -> bool:
    return isinstance(value, Mapping) and len(value) > 0


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _text_of(record: Json) -> str:
    names = ("content", "strategy", "fact", "preference", "pattern", "task_description", "text", "name", "title", "id")
    return next((str(record[name]) for name in names if record.get(name)), cell(record))


def _print_maintained(result: Json, request: Json) -> None:
    verb = "would change" if result["dry_run"] else "changed"
    for each in result["results"]:
        if each.get("error"):
            warn(f"{each['task']}: {each['error']}")
        elif not each["is_on"]:
            say(f"{each['task']:<10} off")
        else:
            say(f"{each['task']:<10} {verb} {each['count']:,}")


# ---------------------------------------------------------------------- measured benefit

_PLOT_WIDTH = 41


def _print_benefit(result: Json, request: Json) -> None:
    """Outcomes, and a line with the interval of each memory and group on one scale."""
    known = ", ".join(f"{count:,} {name}" for name, count in result["outcomes"].items())
    say(f"{_number(result['trials'], 'task')} with an outcome that counts (all: {known or 'none'})")
    if not result["memories"]:
        waiting = "Report outcomes with  alma learn --retrieval-id ID , or count observed ones with  --signals"
        say(waiting if known else "Nothing was measured yet; it needs  benefit: {withhold: 0.05}  in the configuration")
        return
    reach = max(0.1, *(max(abs(each["low"]), abs(each["high"])) for each in result["memories"]))
    say(f"\nEffect on the success rate, {result['level']:.0%} intervals that hold at all times:")
    half = f"{reach:+.0%}"
    say(f"{_plot_scale(half)}  effect     with / without      state")
    for each in result["memories"]:
        say(f"{_plotted(each, reach)}  {each['memory_id']}{'  (demoted)' if each['is_demoted'] else ''}")
        say(f"{'':{_PLOT_WIDTH}}  {cell(each['text'], longest=90) or 'no longer stored'}")
    if result["left_out"]:
        say(f"… {result['left_out']:,} more; raise --limit")
    say("\nGroups:")
    for each in result["groups"]:
        say(f"{_plotted(each, reach)}  {each['name']}")
    if any(each["state"] == "harms" and not each["is_demoted"] and each["is_stored"] for each in result["memories"]):
        say("\nDemote what harms with  alma benefit demote-harmful  and undo it with  alma benefit reinstate")


def _plot_scale(half: str) -> str:
    middle = _PLOT_WIDTH // 2
    return f"{'-' + half[1:]:<{middle}}0{half:>{middle}}"


def _plotted(each: Json, reach: float) -> str:
    """The interval as a line with a mark at the estimate, and its numbers."""

    def place(value: float) -> int:
        return round((max(-reach, min(reach, value)) + reach) / (2 * reach) * (_PLOT_WIDTH - 1))

    low, mark, high = (place(each[name]) for name in ("low", "effect", "high"))
    line = ["─" if low <= at <= high else " " for at in range(_PLOT_WIDTH)]
    line[place(0)] = "┼" if low <= place(0) <= high else "│"
    is_known = each["state"] != "not enough data"
    line[mark] = "●" if is_known else line[mark]
    rates = " / ".join(_rate(each.get(f"rate_{name}"), each[name]) for name in ("shown", "withheld"))
    effect = f"{each['effect']:+7.1%}" if is_known else f"{'–':>7}"
    return f"{''.join(line)}  {effect}  {rates:<20}  {each['state']:<15}"


def _rate(rate: float | None, tasks: int) -> str:
    return f"{'–' if rate is None else f'{rate:.0%}'} of {tasks:,}"


def _print_observed(result: Json, request: Json) -> None:
    if result.get("retrieval_id") is None:
        say("Noted nothing: no memories were measured for this task.")
    else:
        say(f"Noted {result['signal']} for retrieval {result['retrieval_id']}, with a weight of {result['weight']:g}")


def _print_demoted(result: Json, request: Json) -> None:
    verb = "would be demoted" if result["dry_run"] else "demoted"
    for each in result["memories"]:
        say(f"{verb}: {each['kind']} {each['memory_id']}: {cell(each['text'], longest=160)}")
    if not result["memories"]:
        say("Nothing is measured to harm.")


_PRINTERS: dict[str, Printer] = {
    "benefit_report": _print_benefit,
    "observe_outcome": _print_observed,
    "demote_harmful": _print_demoted,
    "maintain": _print_maintained,
    "retrieve": _print_retrieved,
    "learn": _print_learned,
    "recommend": _print_recommended,
    "create_memory": _print_remembered,
    "search_memories": _print_hits,
    "get_context": _print_context,
    "stats": _print_stats,
    "forget": _print_forgotten,
    "purge": _print_purged,
    "sync_status": _print_engines,
    "sync_run": _print_runs,
    "sync_rebuild": _print_run,
    "sync_verify": _print_verified,
    "sync_repair": _print_repaired,
}


_FAILED: dict[str, Callable[[Json], bool]] = {
    "maintain": lambda result: any(each.get("error") for each in result["results"]),
    "sync_run": lambda result: any(map(_has_problem, result["engines"])),
    "sync_rebuild": lambda result: _has_problem(result),
    "sync_verify": lambda result: not result["is_consistent"],
    "sync_repair": lambda result: not result["success"],
    "sync_memory": lambda result: not result["success"],
}


def _has_problem(ran: Json) -> bool:
    return bool(ran["failed"] or ran.get("problem"))
