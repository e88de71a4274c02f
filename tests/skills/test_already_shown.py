"""Memories for a session: a stable block, no memory twice unless it changed, and a budget."""

from __future__ import annotations

from alma import ALMA
from alma.model.learning import UserPreference
from alma.model.scope import Scope
from alma.operations import operation_named
from alma.operations.access import Caller
from alma.tokens import count_tokens
from tests.skills.conftest import STRATEGY, confirm

TASK = "Test the login form"


def test_a_session_gets_one_stable_block_and_nothing_twice(alma: ALMA) -> None:
    confirm(alma)
    alma.add_user_preference("ana", "style", "Answer in English")
    alma.add_domain_knowledge("helena", "web", "The login form has a captcha")
    first = alma.retrieve(TASK, "helena", "ana", already_shown="monday").blocks
    assert first is not None
    assert STRATEGY in first.stable.text
    assert "Answer in English" in first.stable.text
    assert (first.stable.tokens, first.task.tokens) == (count_tokens(first.stable.text), count_tokens(first.task.text))
    assert STRATEGY not in first.task.text
    second = alma.retrieve(TASK, "helena", "ana", already_shown="monday")
    assert second.blocks is not None
    assert (second.blocks.stable.text, second.blocks.task.text, second.blocks.fresh) == (first.stable.text, "", "")
    assert second.total_items == 0 or not second.preferences
    # Another session, and another agent in a session of this name, are shown everything.
    assert alma.retrieve(TASK, "helena", "ana", already_shown="tuesday").blocks == first
    assert alma.retrieve(TASK, "victor", "ana", already_shown="monday").blocks is not None


def test_what_changes_is_shown_again_and_the_stable_block_keeps_its_words(alma: ALMA) -> None:
    confirm(alma)
    kept = alma.add_user_preference("ana", "style", "Answer in English")
    first = alma.retrieve(TASK, "helena", "ana", already_shown="s").blocks
    alma.storage.update(UserPreference, kept.id, {"preference": "Answer in French"}, Scope(user_id="ana"))
    alma.learn("helena", TASK, "success", STRATEGY)
    changed = alma.retrieve(TASK, "helena", "ana", already_shown="s").blocks
    assert first is not None
    assert changed is not None
    assert changed.stable.text == first.stable.text
    assert "Answer in French" in changed.task.text
    again = alma.retrieve(TASK, "helena", "ana", already_shown="s").blocks
    assert again is not None
    assert "French" not in again.task.text
    # What is deleted is in no block any more.
    alma.archive.put(UserPreference, kept.id, Scope(user_id="ana"))
    gone = alma.retrieve(TASK, "helena", "ana", already_shown="s").blocks
    assert gone is not None
    assert "Answer in" not in gone.stable.text + gone.task.text


def test_the_operation_returns_both_blocks_within_the_budget(alma: ALMA) -> None:
    confirm(alma)
    for number in range(12):
        alma.add_user_preference("ana", f"style {number}", f"Wish number {number} of a long list of wishes")
    retrieve = operation_named("retrieve")
    request = {"task": TASK, "agent": "helena", "user_id": "ana", "already_shown": "s", "max_tokens": 200}
    one = retrieve.perform(Caller(alma), request)
    assert one.stable_block.tokens + one.task_block.tokens <= 200
    assert one.prompt.startswith(one.stable_block.text)
    assert one.stable_block.ids
    two = retrieve.perform(Caller(alma), request)
    assert two.stable_block == one.stable_block
    assert not set(two.task_block.ids) & {*one.stable_block.ids, *one.task_block.ids}
