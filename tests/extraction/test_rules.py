"""Facts by rules: what is worth remembering is found, said of whom or what it is about, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.errors import ValidationError
from alma.extraction import ExtractedFact, FactType, RuleBasedExtractor
from alma.judge import StrictJudge
from tests.support.judging import LabelledJudge

STRICT = StrictJudge()


def facts(*turns: tuple[str, str]) -> list[ExtractedFact]:
    """What the frames find in a conversation, whatever a model would say of it."""
    messages = [{"role": role, "content": content} for role, content in turns]
    return list(RuleBasedExtractor(STRICT).extract(messages).facts)


def of_user(text: str) -> list[ExtractedFact]:
    return facts(("user", text))


def only(found: list[ExtractedFact]) -> ExtractedFact:
    (fact,) = found
    return fact


def test_the_conversation_of_the_readme_teaches_what_worked() -> None:
    fact = only(
        facts(
            ("user", "Test the login form"),
            ("assistant", "I used incremental validation which worked well..."),
        )
    )
    assert fact.fact_type is FactType.OUTCOME
    assert (fact.task, fact.strategy, fact.success) == ("Test the login form", "use incremental validation", True)
    assert fact.source_text == "I used incremental validation which worked well..."
    assert (fact.evidence.role, fact.evidence.message) == ("assistant", 1)


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("Hi, I'm Ana. I run the night shift.", ["The user's name is Ana", "The user runs the night shift"]),
        (
            "My name is Priya and I work at Contoso as an SRE.",
            ["The user's name is Priya", "The user works at Contoso as an SRE"],
        ),
        ("call me Ana", ["The user wants to be called Ana"]),
        ("I'm a vegetarian and allergic to nuts.", ["The user is a vegetarian and allergic to nuts"]),
        (
            "I teach chemistry and coach the chess club.",
            ["The user teaches chemistry", "The user coaches the chess club"],
        ),
        ("My daughter is allergic to shellfish.", ["The user's daughter is allergic to shellfish"]),
        ("I don't eat gluten.", ["The user does not eat gluten"]),
        ("My time zone is CET", ["The user's time zone is CET"]),
        ("Hallo, ich heiße Jonas und wohne in Graz.", ["Der Benutzer heißt Jonas", "Der Benutzer wohnt in Graz"]),
        ("Me llamo Lucía y trabajo como abogada.", ["El usuario se llama Lucía", "El usuario trabaja como abogada"]),
        ("Mi chiamo Paolo e vivo a Torino.", ["L'utente si chiama Paolo", "L'utente vive a Torino"]),
        (
            "Je m'appelle Claire et j'habite à Nantes.",
            ["L'utilisateur s'appelle Claire", "L'utilisateur habite à Nantes"],
        ),
        ("Eu moro em Braga.", ["O usuário mora em Braga"]),
    ],
)
def test_who_a_user_is_becomes_statements_about_them(text: str, statements: list[str]) -> None:
    found = of_user(text)
    assert [fact.content for fact in found] == statements
    assert {(fact.fact_type, fact.category) for fact in found} == {(FactType.PREFERENCE, "profile")}


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("I prefer verbose output when I debug", "The user prefers verbose output when they debug"),
        ("Personally, I'd rather have short answers.", "The user prefers short answers"),
        ("I don't like emojis in my mails", "The user does not like emojis in their mails"),
        ("oh btw, i hate long explanations 😂", "The user dislikes long explanations"),
        ("please always run the linter before committing", "Always run the linter before committing"),
        ("From now on, answer in German.", "Answer in German from now on"),
        ("Please stop adding comments.", "Stop adding comments"),
        ("No, use POST instead of GET", "Use POST instead of GET"),
        ("Can you please always add type hints?", "Always add type hints"),
        ("I always use dark mode", "The user always uses dark mode"),
        (
            "Every time you suggest a library, mention its license.",
            "Whenever you suggest a library, mention its license",
        ),
        ("Keep your answers under 100 words.", "Keep answers under 100 words"),
        ("Ich bevorzuge den dunklen Modus", "Der Benutzer bevorzugt den dunklen Modus"),
        ("Je préfère le mode sombre", "L'utilisateur préfère le mode sombre"),
        ("Prefiero que me respondas en español.", "Prefiero que me respondas en español"),
        ("Preferisco risposte brevi", "L'utente preferisce risposte brevi"),
        ("Prefiro respostas curtas", "O usuário prefere respostas curtas"),
        ("Gebruik altijd TypeScript", "Gebruik altijd TypeScript"),
        ("Dorénavant, réponds en français", "Dorénavant, réponds en français"),
    ],
)
def test_what_a_user_wants_is_a_preference(text: str, wish: str) -> None:
    fact = only(of_user(text))
    assert (fact.content, fact.fact_type) == (wish, FactType.PREFERENCE)
    assert fact.category != "profile"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("our API uses OAuth 2.0 with 24h expiry", "Our API uses OAuth 2.0 with 24h expiry"),
        ("ok so our frontend lives in apps/web", "Our frontend lives in apps/web"),
        ("We're using React 18 with Vite", "We're using React 18 with Vite"),
        ("I found that the API returns 404 for missing users", "The API returns 404 for missing users"),
        ("Turns out the root cause was a stale DNS cache.", "The root cause was a stale DNS cache"),
        ("Remember: the demo account is demo@acme.test.", "The demo account is demo@acme.test"),
        ("Deploys need two approvals.", "Deploys need two approvals"),
        ("Python 3.11 is required", "Python 3.11 is required"),
        ("Unser Server läuft auf Debian 12.", "Unser Server läuft auf Debian 12"),
        ("Nuestro servidor está en Frankfurt.", "Nuestro servidor está en Frankfurt"),
    ],
)
def test_how_things_are_is_domain_knowledge(text: str, known: str) -> None:
    fact = only(of_user(text))
    assert (fact.content, fact.fact_type) == (known, FactType.DOMAIN_KNOWLEDGE)


def test_what_is_joined_in_a_sentence_is_told_one_by_one() -> None:
    found = of_user("The sales table is partitioned by month, and it is refreshed every night at 2.")
    assert [fact.content for fact in found] == [
        "The sales table is partitioned by month",
        "The sales table is refreshed every night at 2",
    ]


@pytest.mark.parametrize(
    ("text", "strategy", "success"),
    [
        (
            "I split the import into batches of 500 and it finished in four minutes.",
            "split the import into batches of 500",
            True,
        ),
        ("The trick was to soak the beans overnight.", "soak the beans overnight", True),
        ("We solved the timeout issue with connection pooling.", "use connection pooling", True),
        ("Tests passed after I mocked the API", "mock the API", True),
        ("Restarting the router brought the connection back.", "restart the router", True),
        ("I fixed the failing test by mocking the clock.", "mock the clock", True),
        ("I tried upgrading the driver but it crashed on boot.", "upgrade the driver", False),
        ("I used pytest-xdist, but half of the tests failed.", "use pytest-xdist", False),
        ("Calling customers before 9am never works.", "call customers before 9am", False),
        ("sleep() made the tests flaky", "use sleep()", False),
        ("Increasing the batch size to 64 made training unstable.", "increase the batch size to 64", False),
    ],
)
def test_what_was_tried_is_a_verb_phrase_and_what_came_of_it(text: str, strategy: str, success: bool) -> None:
    fact = only(of_user(text))
    assert (fact.strategy, fact.success) == (strategy, success)


def test_what_does_harm_says_why_and_what_to_do_instead() -> None:
    fact = only(of_user("Using sleep() made the tests flaky, use explicit waits instead"))
    assert (fact.fact_type, fact.strategy) == (FactType.ANTI_PATTERN, "use sleep()")
    assert "made the tests flaky" in (fact.reason or "")
    assert fact.alternative == "explicit waits"


def test_what_works_for_a_kind_of_task_is_a_heuristic() -> None:
    fact = only(of_user("For cold leads, sending a short video works better than calling."))
    assert (fact.fact_type, fact.task, fact.strategy) == (FactType.HEURISTIC, "cold leads", "send a short video")


@pytest.mark.parametrize(
    ("answer", "success"),
    [
        ("That did it, thank you!", True),
        ("👍 worked like a charm", True),
        ("Clearing it fixed it", True),
        ("Works now, thanks", True),
        ("Didn't help, still the old address.", False),
        ("Tried that, no difference.", False),
        ("No luck, it still rejects me.", False),
    ],
)
def test_an_answer_is_about_what_was_advised(answer: str, success: bool) -> None:
    talk = [("user", "The login page rejects my mail"), ("assistant", "Please clear the cache."), ("user", answer)]
    fact = only(facts(*talk))
    assert (fact.success, fact.task) == (success, "The login page rejects my mail")
    assert (fact.strategy or "").startswith("clear")


def test_a_user_who_says_no_turns_a_success_into_a_failure() -> None:
    claim = ("assistant", "I cleared the cache, which fixed the login.")
    assert only(facts(claim)).success is True
    assert only(facts(claim, ("user", "No, it still does not work."))).success is False


def test_a_success_that_is_confirmed_is_one() -> None:
    talk = [
        ("user", "Fix the login"),
        ("assistant", "I cleared the cache, which fixed it."),
        ("user", "Great, that worked!"),
    ]
    assert len(facts(*talk)) == 1


@pytest.mark.parametrize(
    ("turns", "known"),
    [
        (["The database runs on port 5432.", "No, it's port 6432."], "The database runs on port 6432"),
        (["Our token expires after 12 hours.", "Actually, it's 24 hours, not 12."], "Our token expires after 24 hours"),
        (["Tokens expire after 12 hours.", "No, it's 2 days."], "Tokens expire after 2 days"),
        (["The port is 5432... wait, no, 5433."], "The port is 5433"),
        (["We use MySQL.", "Sorry, I meant PostgreSQL."], "We use PostgreSQL"),
        (["We deploy on Fridays.", "No, we deploy on Mondays."], "We deploy on Mondays"),
        (["The demo is on Tuesday at 10. Wait, no, the demo is on Thursday at 10."], "The demo is on Thursday at 10"),
    ],
)
def test_a_correction_takes_the_place_of_what_was_said(turns: list[str], known: str) -> None:
    fact = only(facts(*(("user", turn) for turn in turns)))
    assert fact.content == known
    assert fact.supersedes


@pytest.mark.parametrize(
    "text", ["I prefer tabs. Never mind.", "I prefer tabs, no wait, I prefer spaces.", "I like tea (no, coffee)"]
)
def test_what_is_taken_back_is_not_learned(text: str) -> None:
    assert of_user(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Does the invoice service listen on port 8443?",
        "If we moved to Postgres 17, would the extension still work?",
        "Maybe our API should use OAuth",
        "I think we use Redis for sessions, but I'm not sure.",
        "Next quarter we might migrate the queue to Kafka.",
        "Let's say my name is Bob and I live in Paris.",
        "Pretend that I'm the king of Norway. I live in a castle.",
        "Oh great, the staging box is down again. I just love it when that happens.",
        "Sure, because rewriting everything in Rust always works so well.",
        "I could eat a horse.",
        "I'm so tired today, what a week.",
        "The weather is lovely here today.",
        "The build is green now.",
        "This is exactly what I wanted.",
        "That movie was awful.",
        "We need to talk about the budget.",
        "My kids are so excited about the summer.",
        "I like the idea of a second cache",
        "Don't worry about it",
        "don't forget to eat",
        "Book me a table for two tonight at seven.",
        "How do I merge two PDFs?",
        "Increasing the pool size helped a bit, but the errors came back.",
        "I used caching which worked poorly.",
        "Adding an index fixed the query and broke the writes.",
        "The root of the problem is a missing index.",
        "lol ok thanks a lot",
        "Ça va bien, merci !",
        "¿Prefieres té o café?",
        "Läuft unser Server auf Debian 12?",
        "こんにちは、元気ですか？",
    ],
)
def test_questions_suppositions_irony_and_small_talk_give_nothing(text: str) -> None:
    assert of_user(text) == []


@pytest.mark.parametrize(
    "text",
    [
        'My boss said "we deploy on Fridays, period".',
        "Alice says she always uses vim",
        "According to Sam, our API requires a key",
        "Someone told me that the office closes early.",
        "ERROR The server requires authentication",
        "2026-01-05 10:00:00 the job runs on port 9",
        "ValueError: our server uses port 9",
        "```\nI prefer tabs.\n```",
        "Write a story in which the hero says: I always use my left hand. Our castle is located in Spain.",
        "Translate to German: I always want coffee. Our office closes at 5pm.",
        "Draft an email: Hi Tom, I prefer meeting on Monday. Our office closes at 5pm.",
    ],
)
def test_the_words_of_others_give_nothing(text: str) -> None:
    assert of_user(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "You can use uv, which is usually much faster than pip.",
        "I prefer tabs. My name is Claude and I live in a data centre.",
        "Postgres uses MVCC.",
        "I will run them in parallel and let you know.",
        "Restarting your router fixes most problems.",
    ],
)
def test_what_an_assistant_advises_explains_or_says_of_itself_gives_nothing(text: str) -> None:
    assert facts(("assistant", text)) == []


def test_what_an_assistant_found_out_is_domain_knowledge() -> None:
    fact = only(facts(("assistant", "I found that the staging database listens on port 5433.")))
    assert (fact.fact_type, fact.content) == (FactType.DOMAIN_KNOWLEDGE, "The staging database listens on port 5433")


def test_the_judge_has_the_last_word() -> None:
    said, statement = "I prefer tabs", "The user prefers tabs"
    messages = [{"role": "user", "content": said}]
    for label, learned in (("same", 1), ("more", 1), ("other", 0), ("opposite", 0)):
        judge = LabelledJudge({(said, statement): label})  # type: ignore[dict-item]
        assert len(RuleBasedExtractor(judge).extract(messages)) == learned
        assert (said, statement) in judge.asked


@pytest.mark.parametrize(
    "text",
    [
        "Die Datenbank läuft auf Port 5433.",
        "データベースはポート5433です。",
        "Je préfère les tabulations",
        "قاعدة البيانات على المنفذ 5433",
        "\u202e\u0000\ufeff" * 5,
        "😀" * 500,
    ],
)
def test_other_languages_are_no_reason_to_fail(text: str) -> None:
    RuleBasedExtractor(STRICT).extract([{"role": "user", "content": text}])


def test_what_is_made_up_is_not_what_was_done() -> None:
    told = "I used a sword which worked well."
    assert facts(("user", "Write a poem about a knight"), ("assistant", told)) == []
    assert len(facts(("user", "Write an email validator"), ("assistant", told))) == 1


def test_what_follows_a_quotation_is_read() -> None:
    found = of_user("> I always use vim\nI prefer tabs.\n\n    x = 1\nOur API runs on port 9000.")
    assert [fact.content for fact in found] == ["The user prefers tabs", "Our API runs on port 9000"]


def test_every_fact_stands_where_it_says() -> None:
    text = "Hi!\n- I prefer tabs.\n- our API uses OAuth 2.0; the staging DB is on port 5433\n\nThanks"
    found = of_user(text)
    assert len(found) == 3
    for fact in found:
        assert text[fact.evidence.start : fact.evidence.end] == fact.evidence.text


def test_a_fact_that_is_said_twice_is_one() -> None:
    assert len(facts(("user", "I prefer tabs"), ("assistant", "ok"), ("user", "I prefer tabs!"))) == 1


def test_what_the_system_and_tools_say_is_not_read() -> None:
    assert facts(("system", "I prefer tabs"), ("tool", "the database is on port 5433")) == []
    for role in ("function", "developer", "web", "observation", "users"):
        assert facts((role, "The staging database is on port 5433. I used caching which worked well.")) == []


def test_what_a_tool_hands_over_in_a_message_is_not_the_users_word() -> None:
    for part in ({"type": "tool_result", "text": "I prefer tabs"}, {"type": "tool_result", "content": "I prefer tabs"}):
        assert RuleBasedExtractor(STRICT).extract([{"role": "user", "content": [part]}]).facts == ()


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "I prefer tabs"}, {"type": "image", "source": {}}, "Never use spaces"]
    assert len(RuleBasedExtractor(STRICT).extract([{"role": "user", "content": parts}]).facts) == 2
    assert len(RuleBasedExtractor(STRICT).extract([{"role": "user", "content": None}])) == 0


@pytest.mark.parametrize(
    "messages", ["hello", {"role": "user"}, [7], [{"content": "x"}], [{"role": "user", "content": 7}], 7]
)
def test_an_invalid_conversation_is_refused(messages: Any) -> None:
    with pytest.raises(ValidationError):
        RuleBasedExtractor(STRICT).extract(messages)


_WORDS = [
    "I",
    "prefer",
    "always",
    "not",
    "sleep()",
    "worked",
    "because",
    "it is 5, not 4",
    "the API uses",
    "?",
    ".",
    "\n",
    "if",
]


@given(st.lists(st.text() | st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join), max_size=4))
def test_any_conversation_is_read(texts: list[str]) -> None:
    messages = [{"role": "user" if i % 2 else "assistant", "content": text} for i, text in enumerate(texts)]
    for fact in RuleBasedExtractor(STRICT).extract(messages).facts:
        assert fact.content.strip()
        assert messages[fact.evidence.message]["content"][fact.evidence.start : fact.evidence.end] == fact.evidence.text


@pytest.mark.parametrize(
    "piece", ["I tried ", "worked ", "made the ", "a ", "the API ", "always never ", "\n", "it is ", "not "]
)
def test_long_messages_do_not_take_long(piece: str) -> None:
    began = time.process_time()
    of_user(piece * (20_000 // len(piece)))
    assert time.process_time() - began < 5
