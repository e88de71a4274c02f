"""Facts by rules: what is worth remembering is found, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alma.errors import ValidationError
from alma.extraction import ExtractedFact, FactType, RuleBasedExtractor


def facts(*turns: tuple[str, str]) -> list[ExtractedFact]:
    """What is found in a conversation, as far as it is certain enough to be learned."""
    messages = [{"role": role, "content": content} for role, content in turns]
    return [fact for fact in RuleBasedExtractor().extract(messages).facts if fact.confidence >= 0.5]


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
    assert (fact.task, fact.strategy, fact.success) == ("Test the login form", "incremental validation", True)
    assert fact.source_text == "I used incremental validation which worked well..."
    assert (fact.evidence.role, fact.evidence.message) == ("assistant", 1)


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("I prefer verbose output", "prefers verbose output"),
        ("Personally, I'd rather have short answers.", "prefers short answers"),
        ("please always run the linter before committing", "always run the linter before committing"),
        ("Never use tabs!", "never use tabs"),
        ("From now on, answer in German.", "answer in German"),
        ("call me Ana", "wants to be called Ana"),
        ("I'm a vegetarian and allergic to nuts.", "is a vegetarian and allergic to nuts"),
        ("I work in the Lisbon office.", "works in the Lisbon office"),
        ("Please don't send me weekly summaries anymore.", "do not send me weekly summaries anymore"),
        ("Keep answers under 200 words.", "Keep answers under 200 words"),
        ("My time zone is CET", "time zone: CET"),
        ("I don't like emojis in answers", "dislikes emojis in answers"),
        ("I don’t like emojis in answers", "dislikes emojis in answers"),
        ("oh btw, i hate long explanations 😂", "dislikes long explanations"),
        ("dont use sleep() in tests", "do not use sleep() in tests"),
        ("i prefer tabs pls", "prefers tabs"),
        ("Please stop adding comments.", "avoid adding comments"),
        ("I would like you to always answer in French", "always answer in French"),
        ("I always use dark mode", "always use dark mode"),
        ("I always send the proposal on Fridays", "always send the proposal on Fridays"),
        ("You should always validate input", "always validate input"),
        ("No, use POST instead of GET", "use POST instead of GET"),
        ("use spaces not tabs", "use spaces not tabs"),
        ("No emojis please", "no emojis"),
        ("Keep answers short", "Keep answers short"),
        ("I live in Berlin", "lives in Berlin"),
        ("Never deploy on Fridays, please.", "never deploy on Fridays"),
        ("Can you please always add type hints?", "always add type hints"),
        ("Could you never push to main, please?", "never push to main"),
        ("Would you stop adding comments to every line?", "avoid adding comments to every line"),
        ("Could you from now on answer in German?", "answer in German"),
    ],
)
def test_what_a_user_wants_is_a_preference(text: str, preference: str) -> None:
    fact = only(of_user(text))
    assert (fact.fact_type, fact.content) == (FactType.PREFERENCE, preference)
    assert fact.category


WISHES_ABROAD = (
    *("Ich bevorzuge den dunklen Modus", "Bitte benutze immer TypeScript", "Bitte immer auf Deutsch antworten"),
    *("Verwende niemals var", "Ab jetzt bitte kurze Antworten", "Ich mag keine langen Erklärungen"),
    *(
        "Je préfère le mode sombre",
        "Utilise toujours TypeScript",
        "N'utilise jamais var",
        "Dorénavant, réponds en français",
    ),
    *("Prefiero el modo oscuro", "Usa siempre TypeScript", "Nunca uses var", "No me gustan las respuestas largas"),
    *("Preferisco risposte brevi", "Usa sempre TypeScript", "Non usare mai var", "D'ora in poi rispondi in italiano"),
    *(
        "Prefiro respostas curtas",
        "Use sempre TypeScript",
        "Gebruik altijd TypeScript",
        "Ik heb liever korte antwoorden",
    ),
)


@pytest.mark.parametrize("text", WISHES_ABROAD)
def test_wishes_in_other_languages_are_kept_as_they_were_said(text: str) -> None:
    assert [fact.content for fact in of_user(f"{text}.")] == [text]
    assert facts(("assistant", f"{text}.")) == []


@pytest.mark.parametrize(
    "text",
    [
        "Bevorzuge ich den dunklen Modus?",
        "Benutzt du immer TypeScript?",
        "Wenn ich den dunklen Modus bevorzuge, blinkt es.",
        "Verwende den Port 8080.",
        "Ich nehme immer den Bus.",
        "Je préfère ne pas répondre.",
        "Prefiero no opinar.",
        "Usa el puerto 8080.",
    ],
)
def test_what_is_asked_or_said_in_passing_in_other_languages_is_no_preference(text: str) -> None:
    assert of_user(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Can you always reproduce it?",
        "Could you please add type hints?",
        "Why do you always use tabs?",
        "Will it stop?",
    ],
)
def test_what_is_asked_once_or_for_real_is_no_preference(text: str) -> None:
    assert of_user(text) == []


@pytest.mark.parametrize(
    "verdict",
    ["The second one did the trick.", "Your first idea worked!", "The latter worked.", "Option 2 worked."],
)
def test_one_of_several_that_was_advised_is_no_strategy(verdict: str) -> None:
    advice = "You could set the header in nginx, or put a proxy in front of it."
    found = facts(("user", "How do I fix CORS?"), ("assistant", advice), ("user", verdict))
    assert found == []


@pytest.mark.parametrize("when", ["on the first try", "on the second attempt", "in the end", "for me", "for now"])
def test_when_something_worked_is_not_what_it_was_for(when: str) -> None:
    fact = only(facts(("user", "Make the upload reliable"), ("user", f"Retrying with backoff worked {when}.")))
    assert (fact.strategy, fact.task) == ("Retrying with backoff", "Make the upload reliable")


@pytest.mark.parametrize(
    ("told", "strategy"),
    [
        ("Fixed by regenerating the session id after login.", "regenerating the session id after login"),
        ("Solved it with a longer timeout.", "a longer timeout"),
        ("Resolved this by pinning the driver to 1.4", "pinning the driver to 1.4"),
    ],
)
def test_a_report_without_a_subject_is_of_its_speaker(told: str, strategy: str) -> None:
    fact = only(facts(("user", "Fix the login bug"), ("assistant", told)))
    assert (fact.task, fact.strategy, fact.success) == ("Fix the login bug", strategy, True)


@pytest.mark.parametrize(
    ("told", "strategy"),
    [
        ("I used pytest-xdist, but half of the tests failed because they share a database.", "pytest-xdist"),
        ("I tried the new bundler but two pages crashed.", "the new bundler"),
        ("We switched to gRPC, but most of our clients timed out.", "gRPC"),
    ],
)
def test_what_a_part_of_which_failed_is_a_failure(told: str, strategy: str) -> None:
    fact = only(facts(("user", "Speed up the build"), ("assistant", told)))
    assert (fact.strategy, fact.success) == (strategy, False)


@pytest.mark.parametrize("answer", ["Nope, same error", "still the same problem.", "no, still broken", "Same issue."])
def test_advice_that_changed_nothing_failed(answer: str) -> None:
    advice = "Set the Access-Control-Allow-Origin header in nginx."
    fact = only(facts(("user", "How do I fix CORS?"), ("assistant", advice), ("user", answer)))
    assert (fact.strategy, fact.success) == ("Set the Access-Control-Allow-Origin header in nginx", False)


@pytest.mark.parametrize("text", ["My cat's name is Luna", "My budget is 200 dollars", "my car is a 2018 Honda"])
def test_what_is_true_of_a_user_is_theirs(text: str) -> None:
    fact = only(of_user(text))
    assert (fact.fact_type, fact.category) == (FactType.PREFERENCE, "profile")


def test_what_is_true_of_a_users_system_is_domain_knowledge() -> None:
    assert only(of_user("My API uses OAuth 2.0")).fact_type is FactType.DOMAIN_KNOWLEDGE
    assert only(of_user("my staging database is on port 5433")).fact_type is FactType.DOMAIN_KNOWLEDGE


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("My name is Priya and I work at Contoso as an SRE.", ["name: Priya", "works at Contoso as an SRE"]),
        ("I'm allergic to peanuts and I prefer window seats", ["is allergic to peanuts", "prefers window seats"]),
        ("Would you say I am late and I prefer trains?", []),
        ("I'm vegetarian, by the way.", ["is vegetarian"]),
        (
            "Seriously though: the runner has 4 GB of RAM, so never run more than two workers.",
            ["the runner has 4 GB of RAM", "never run more than two workers"],
        ),
        ("My boss told me that tests are slow, so never run them.", []),
    ],
)
def test_who_goes_on_about_themselves_tells_two_things(text: str, told: list[str]) -> None:
    assert [fact.content for fact in of_user(text)] == told


def test_what_worked_in_the_end_is_what_was_done_last() -> None:
    found = facts(
        ("user", "Deploy to staging"),
        ("assistant", "I tried kubectl apply but it failed. After fixing the registry secret it worked."),
    )
    assert [(fact.strategy, fact.success) for fact in found] == [
        ("kubectl apply", False),
        ("fixing the registry secret", True),
    ]


def test_what_an_assistant_wants_is_none() -> None:
    assert facts(("assistant", "I prefer tabs. Always use tabs. Call me Bot.")) == []


@pytest.mark.parametrize(
    "text",
    [
        "our API uses OAuth 2.0 with 24h expiry",
        "the staging database is on port 5433",
        "The API key expires after 90 days",
        "we deploy on Fridays",
        "PostgreSQL stores the sessions in table user_sessions",
        "The function returns None if the user is missing",
        "All passwords are stored in Vault",
        "ok so our frontend lives in apps/web",
        "Our team lead is Maria",
        "The build takes 10 minutes",
        "We're using React 18 with Vite",
        "Python 3.11 is required",
        "The problem was that the token had expired",
        "I found that the API returns 404 for missing users",
    ],
)
def test_what_is_so_is_domain_knowledge(text: str) -> None:
    fact = only(of_user(text))
    assert fact.fact_type is FactType.DOMAIN_KNOWLEDGE
    assert fact.content in text


def test_what_is_to_be_remembered_is_domain_knowledge() -> None:
    assert only(of_user("Remember that the CI needs Node 20.")).content == "the CI needs Node 20"


@pytest.mark.parametrize(
    ("text", "strategy", "reason"),
    [
        ("sleep() made the tests flaky", "sleep()", "made the tests flaky"),
        ("Don't use sleep(), it causes flaky tests", "sleep()", "causes flaky tests"),
        ("Using XPath selectors caused timeouts", "XPath selectors", "caused timeouts"),
        ("Avoid mocking the clock because it breaks the scheduler", "mocking the clock", "it breaks the scheduler"),
    ],
)
def test_what_does_harm_is_an_anti_pattern(text: str, strategy: str, reason: str) -> None:
    fact = only(of_user(text))
    assert (fact.fact_type, fact.strategy, fact.reason) == (FactType.ANTI_PATTERN, strategy, reason)
    assert fact.success is False


def test_what_to_do_instead_is_noticed() -> None:
    assert only(of_user("Using XPath caused timeouts, use data-testid instead")).alternative == "data-testid"


@pytest.mark.parametrize(
    ("text", "strategy", "success"),
    [
        ("I tried mocking the clock but it failed with TimeoutError", "mocking the clock", False),
        ("The retry loop didn't work because the server was down", "The retry loop", False),
        ("I fixed the login bug by clearing the cookies", "clearing the cookies", True),
        ("Switching to explicit waits fixed the flaky tests", "Switching to explicit waits", True),
        ("Page objects worked great for the checkout", "Page objects", True),
        ("We solved the timeout issue with connection pooling.", "connection pooling", True),
        ("The fix was to increase the timeout", "increase the timeout", True),
        ("Tests passed after I mocked the API", "mocked the API", True),
        ("I implemented the retry logic and all tests pass now", "implemented the retry logic", True),
        ("After adding an index the query was 10x faster", "adding an index", True),
        ("Restarting the server helped", "Restarting the server", True),
        ("We had success with snapshot tests", "snapshot tests", True),
        ("Clearing the cache didn't help", "Clearing the cache", False),
        ("Batching requests by ten kept us under the limit and worked great.", "Batching requests by ten", True),
    ],
)
def test_what_was_tried_is_an_outcome(text: str, strategy: str, success: bool) -> None:
    fact = only(facts(("assistant", text)))
    assert (fact.fact_type, fact.strategy, fact.success) == (FactType.OUTCOME, strategy, success)


def test_that_it_did_not_work_is_said_of_what_was_tried_before() -> None:
    fact = only(
        facts(
            ("user", "Fix the checkout test"),
            ("assistant", "I tried waiting five seconds."),
            ("user", "that didn't work because the page loads slower"),
        )
    )
    assert (fact.task, fact.strategy) == ("Fix the checkout test", "waiting five seconds")
    assert (fact.success, fact.reason) == (False, "the page loads slower")


def test_that_it_worked_is_said_of_what_was_advised_before() -> None:
    fact = only(
        facts(
            ("user", "How do I fix the timeout?"),
            ("assistant", "You can increase the pool size to 20."),
            ("user", "That worked, thanks!"),
        )
    )
    assert (fact.task, fact.strategy, fact.success) == ("fix the timeout", "increase the pool size to 20", True)


def test_that_something_succeeded_is_said_of_what_was_done_before() -> None:
    fact = only(facts(("user", "Fix the login"), ("assistant", "I've updated the config. The deployment succeeded.")))
    assert (fact.strategy, fact.success) == ("updated the config", True)


@pytest.mark.parametrize(
    "text",
    [
        "I used caching which worked poorly.",
        "I used caching and it worked only once, then failed.",
        "I used caching which worked until the load test crashed.",
        "I used caching, which worked, but the users lost their carts.",
        "I used caching which worked well at first but then broke production.",
        "I used caching which worked suspiciously.",
        "I used caching which worked about half the time.",
        "I used caching and it worked fine, except on Safari.",
        "I used caching, which worked. Then it broke production.",
        "Caching barely worked.",
        "Caching worked well for nobody.",
        "Caching worked for 2 of 10 users.",
        "Caching helped a little.",
        "Adding an index fixed the query and broke the writes.",
        "After adding an index it worked until midnight.",
    ],
)
def test_what_worked_only_half_is_no_success(text: str) -> None:
    assert not [fact for fact in facts(("user", "Speed up the shop"), ("assistant", text)) if fact.success]


@pytest.mark.parametrize(
    "text",
    [
        "I used caching which worked like a charm.",
        "I used caching which worked without any errors.",
        "I used caching and it worked immediately.",
        "I used retries, which worked well for flaky tests.",
        "Caching worked for all 10 users.",
        "I fixed the failing test by mocking the clock.",
        "Tests passed after I removed the failing fixture.",
    ],
)
def test_what_is_praised_is_a_success(text: str) -> None:
    assert only(facts(("user", "Speed up the shop"), ("assistant", text))).success is True


@pytest.mark.parametrize(
    ("answer", "learned"),
    [
        ("No, that broke the tests.", [False]),
        ("It still fails.", [False]),
        ("That didn't work.", [False]),
        ("No.", []),
        ("Same error as before.", [False]),
        ("Why is the build still red?", []),
        ("Thanks, but it still crashes.", []),
        ("Please revert that.", []),
        ("Great, thanks!", [True]),
        ("Yes, it works.", [True]),
        ("No problem.", [True]),
        ("Now fix the failing login test.", [True]),
    ],
)
def test_the_user_decides_whether_it_worked(answer: str, learned: list[bool]) -> None:
    told = [("user", "Fix the build"), ("assistant", "Pinning numpy to 1.26 fixed the build."), ("user", answer)]
    found = facts(*told)
    assert [fact.success for fact in found] == learned
    assert {fact.strategy for fact in found} <= {"Pinning numpy to 1.26"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("The port is 5432... wait, no, 5433.", ["The port is 5433"]),
        ("The port is 5432, I mean 5433.", ["The port is 5433"]),
        ("The token expires after 12 hours. Correction: 24 hours.", ["The token expires after 24 hours"]),
        ("I prefer tabs. Scratch that, spaces.", []),
        ("I prefer tabs. Scratch that, I prefer spaces.", ["prefers spaces"]),
        ("I prefer tabs, no wait, I prefer spaces.", ["prefers spaces"]),
        ("I prefer tabs. Never mind.", []),
        ("I prefer tabs. Just kidding.", []),
        ("I like tea (no, coffee)", []),
        ("Our API uses OAuth. Actually, it uses JWT.", []),
        ("I prefer tabs. No emojis please.", ["prefers tabs", "no emojis"]),
        ("My name is Ana. I mean it.", ["name: Ana"]),
    ],
)
def test_who_changes_their_mind_is_not_held_to_the_first_half(text: str, meant: list[str]) -> None:
    assert [fact.content for fact in of_user(text)] == meant


def test_what_is_corrected_by_its_speaker_supersedes_what_was_said() -> None:
    fact = only(facts(("user", "The port is 5432."), ("assistant", "ok"), ("user", "Sorry, I meant 5433.")))
    assert (fact.content, fact.supersedes) == ("The port is 5433", "The port is 5432")


def test_that_it_worked_is_one_success_however_often_it_is_said() -> None:
    told = ("assistant", "I used incremental validation which worked well.")
    assert len(facts(("user", "Test the login form"), told, ("user", "That worked, thanks!"))) == 1


def test_what_works_for_a_kind_of_task_is_a_heuristic() -> None:
    fact = only(of_user("For long forms, incremental validation works best."))
    assert (fact.fact_type, fact.task, fact.strategy) == (FactType.HEURISTIC, "long forms", "incremental validation")


@pytest.mark.parametrize("said", ["no, it is 5433, not 5432", "Actually it's 5433, not 5432.", "No, it's 5433"])
def test_a_correction_replaces_what_was_said(said: str) -> None:
    fact = only(facts(("assistant", "The staging database is on port 5432."), ("user", said)))
    assert fact.content == "The staging database is on port 5433"
    assert (fact.corrects, fact.evidence.role) == ("5432", "user")


@pytest.mark.parametrize(
    ("said", "corrected", "meant"),
    [
        ("The database runs on port 5432.", "No, it's port 6432.", "The database runs on port 6432"),
        ("The database runs on port 5432.", "Actually it runs on port 6432.", "The database runs on port 6432"),
        ("The database runs on port 5432.", "Sorry, I meant port 6432.", "The database runs on port 6432"),
        (
            "The database runs on port 5432.",
            "Sorry, that's wrong: it's port 6432 because of the pooler.",
            "The database runs on port 6432",
        ),
        ("The database is on port 5432.", "Sorry, that was wrong, it is on port 6432.", "The database is on port 6432"),
        ("Tokens expire after 12 hours.", "No, it's 2 days.", "Tokens expire after 2 days"),
        ("The database runs on MySQL 5.7.", "No, it's MySQL 8.0.", "The database runs on MySQL 8.0"),
        ("We use MySQL.", "Sorry, I meant PostgreSQL.", "We use PostgreSQL"),
        ("We deploy on Fridays.", "No, we deploy on Mondays.", "We deploy on Mondays"),
        (
            "The wiki is https://old.dev.",
            "Sorry, that was wrong, it is https://new.dev.",
            "The wiki is https://new.dev",
        ),
    ],
)
def test_what_users_correct_later_in_what_they_said_themselves_is_not_learned(
    said: str, corrected: str, meant: str
) -> None:
    found = facts(("user", said), ("assistant", "Noted."), ("user", corrected))
    assert [fact.content for fact in found] == [meant]


def test_a_correction_is_of_what_was_told_and_not_of_its_repetition() -> None:
    fact = only(
        facts(
            ("user", "The database runs on port 5432."),
            ("assistant", "OK, 5432."),
            ("user", "Sorry, that's wrong: it's port 6432."),
        )
    )
    assert (fact.content, fact.supersedes) == ("The database runs on port 6432", "The database runs on port 5432")


@pytest.mark.parametrize(
    ("turns", "stays"),
    [
        (("The cluster has 3 nodes.", "Great.", "No, it's fine at 5 pm."), "The cluster has 3 nodes"),
        (("The API runs on port 8080.", "Shall I use 3 workers?", "No, it's 6."), "The API runs on port 8080"),
    ],
)
def test_a_number_that_belongs_to_something_else_corrects_nothing(turns: tuple[str, str, str], stays: str) -> None:
    assert [fact.content for fact in facts(*zip(("user", "assistant", "user"), turns, strict=True))] == [stays]


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("I tried dropping duplicates in memory but it ran out of memory.", "dropping duplicates in memory"),
        ("I tried clicking at once, but the click was intercepted by an overlay.", "clicking at once"),
        ("I uploaded it in one part, which was rejected by the proxy.", "uploaded it in one part"),
        ("I bumped the timeout, but it still fails now and then.", "bumped the timeout"),
    ],
)
def test_what_was_stopped_on_its_way_failed(text: str, strategy: str) -> None:
    fact = only(facts(("user", "Clean up the data"), ("assistant", text)))
    assert (fact.success, fact.strategy) == (False, strategy)


def test_what_ends_without_errors_worked() -> None:
    told = "I ran the migration with a lock timeout and it completed without errors."
    fact = only(facts(("user", "Migrate the orders"), ("assistant", told)))
    assert (fact.success, fact.strategy) == (True, "the migration with a lock timeout")


def test_a_correction_may_say_everything_itself() -> None:
    fact = only(of_user("Actually the API uses JWT, not OAuth"))
    assert (fact.content, fact.corrects) == ("the API uses JWT, not OAuth", "OAuth")


@pytest.mark.parametrize(
    "text",
    [
        "Do you prefer tabs?",
        "Is the database on port 5433?",
        "is the staging database on port 5433",
        "What if sleep() made the tests flaky?",
        "If our API used OAuth 2.0 it would be safer",
        "Maybe the database is on port 5433",
        "I think the database is on port 5433",
        "It would work with port 5433",
        "Our API doesn't use OAuth",
        "I did not use incremental validation",
        "I don't use Redis",
        'He said "I prefer tabs"',
        "Never mind.",
        "Always happy to help!",
        "I like it",
        "I love this!",
        "call me later",
        "Thanks, that's great!",
        "lol ok 😂",
        "good morning, how are you",
        "The weather is nice today",
        "The tests are running now",
        "we have a problem",
        "It worked!",
        "nothing worked",
        "don't touch the config this time",
        "```\nI prefer tabs\n```",
        "> I prefer tabs",
        "Let's try using Redis",
        "I'll use Redis for that",
        "The login tests failed because the selector changed",
        "The tests are passing, not failing",
        "We stay on top of it",
        "I restarted it and that fixed the crash for an hour.",
        "Adding more logging made it work only once.",
        "Cutting corners made the team work late.",
        "This is really not good",
        "I hate it when tests are flaky",
        "You never listen",
        "Can you always answer in French?",
        "I need help with the login form",
        "",
    ],
)
def test_questions_suppositions_denials_and_small_talk_give_nothing(text: str) -> None:
    assert of_user(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Remember, the key is to find a routine that works for you.",
        "Try both and see what works best for your team.",
        "**Backups**: a failed disk can lead to data loss, so keep copies.",
        "High humidity may cause problems with the paint.",
        "A gray background works well.",
        "Take breaks, and remember that it's okay to slow down.",
        "Your report is 20 pages long.",
        "The museum is open from 9 to 5.",
        "I'd be happy to share what has worked for others.",
        "Working with a fixed lens can be a great exercise.",
        "This works out to around 34 dollars.",
        "Python uses indentation.",
    ],
)
def test_what_an_assistant_advises_or_explains_gives_nothing(text: str) -> None:
    assert facts(("user", "Fix the login"), ("assistant", "I moved the button."), ("assistant", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "I like the idea of a second cache",
        "I don't want to break the layout",
        "I'm trying to find a setup that works for me",
        "Since then, I've worked on it",
        "My train is late, which is better than nothing",
    ],
)
def test_what_a_user_says_in_passing_gives_nothing(text: str) -> None:
    assert of_user(text) == []


def test_what_an_assistant_finds_out_about_the_system_is_domain_knowledge() -> None:
    assert only(facts(("assistant", "The staging database is on port 5433."))).fact_type is FactType.DOMAIN_KNOWLEDGE
    assert only(facts(("assistant", "sleep() causes flaky tests."))).fact_type is FactType.ANTI_PATTERN


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
    RuleBasedExtractor().extract([{"role": "user", "content": text}])


@pytest.mark.parametrize(
    "text",
    [
        "Alice says she always uses vim",
        "My manager thinks our server uses too much memory",
        "According to Sam, our API requires a key",
        "ERROR The server requires authentication",
        "2026-01-05 10:00:00 the job runs on port 9",
        "ValueError: our server uses port 9",
        "Yeah right, I love waiting for CI",
        "Write a story in which the hero says: I always use my left hand. Our castle is located in Spain.",
        "Translate to German: I always want coffee. Our office closes at 5pm.",
        "Draft an email: Hi Tom, I prefer meeting on Monday. Our office closes at 5pm.",
    ],
)
def test_the_words_of_others_give_nothing(text: str) -> None:
    assert of_user(text) == []


def test_what_is_made_up_is_not_what_was_done() -> None:
    told = "I used a sword which worked well."
    assert facts(("user", "Write a poem about a knight"), ("assistant", told)) == []
    assert len(facts(("user", "Write an email validator"), ("assistant", told))) == 1


def test_what_follows_a_quotation_is_read() -> None:
    found = of_user("> I always use vim\nI prefer tabs.\n\n    x = 1\nOur API runs on port 9000.")
    assert [fact.content for fact in found] == ["prefers tabs", "Our API runs on port 9000"]


def test_a_correction_has_its_unit_once() -> None:
    found = facts(("user", "Our token expires after 12 hours."), ("user", "Actually, it's 24 hours, not 12."))
    assert [fact.content for fact in found] == ["Our token expires after 24 hours"]


def test_to_use_one_and_not_another_is_a_wish() -> None:
    assert only(of_user("use pnpm, not npm")).fact_type is FactType.PREFERENCE


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
        assert RuleBasedExtractor().extract([{"role": "user", "content": [part]}]).facts == ()


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "I prefer tabs"}, {"type": "image", "source": {}}, "Never use spaces"]
    assert len(RuleBasedExtractor().extract([{"role": "user", "content": parts}]).facts) == 2
    assert len(RuleBasedExtractor().extract([{"role": "user", "content": None}])) == 0


@pytest.mark.parametrize(
    "messages", ["hello", {"role": "user"}, [7], [{"content": "x"}], [{"role": "user", "content": 7}], 7]
)
def test_what_is_no_conversation_is_refused(messages: Any) -> None:
    with pytest.raises(ValidationError):
        RuleBasedExtractor().extract(messages)


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


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(st.lists(st.text() | st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join), max_size=4))
def test_any_conversation_is_read(texts: list[str]) -> None:
    messages = [{"role": "user" if i % 2 else "assistant", "content": text} for i, text in enumerate(texts)]
    for fact in RuleBasedExtractor().extract(messages).facts:
        assert fact.content.strip()
        assert messages[fact.evidence.message]["content"][fact.evidence.start : fact.evidence.end] == fact.evidence.text


@pytest.mark.parametrize(
    "piece", ["I tried ", "worked ", "made the ", "a ", "the API ", "always never ", "\n", "it is ", "not "]
)
def test_long_messages_do_not_take_long(piece: str) -> None:
    began = time.process_time()
    of_user(piece * (20_000 // len(piece)))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("said", "strategy", "success"),
    [
        ("Pinning numpy to 1.26 fixed it.", "Pinning numpy to 1.26", True),
        ("I fixed the problem by pinning numpy.", "pinning numpy", True),
        ("Then I pinned numpy and that worked.", "pinned numpy", True),
        ("After that I pinned numpy, which worked.", "pinned numpy", True),
        ("In the end, I pinned numpy, which failed.", "pinned numpy", False),
    ],
)
def test_what_was_tried_is_told_of_the_task_that_was_named(said: str, strategy: str, success: bool) -> None:
    fact = only(facts(("user", "Why is the build broken?"), ("assistant", said)))
    assert (fact.task, fact.strategy, fact.success) == ("Why is the build broken", strategy, success)


def test_what_is_preferred_now_counts() -> None:
    assert only(of_user("I used to prefer Java, now I prefer Kotlin.")).content == "prefers Kotlin"
    assert of_user("I used to prefer Java.") == []


@pytest.mark.parametrize(
    ("text", "strategy", "success"),
    [
        ("I moved it to channel 11 and that solved it.", "moved it to channel 11", True),
        ("I split the export into chunks and that fixed the time-out.", "split the export into chunks", True),
        ("Waiting for the network made the test stable.", "Waiting for the network", True),
        ("Preloading the fonts cut the load time from 4 s to 1.2 s.", "Preloading the fonts", True),
        ("I set the pool size to 20 and now the timeouts are gone.", "set the pool size to 20", True),
        ("I opened port 80 in the firewall and the renewal went through.", "opened port 80 in the firewall", True),
        ("Deleting the profile and importing it again worked.", "Deleting the profile and importing it again", True),
        ("Adding the eggs off the heat worked perfectly, no scrambling.", "Adding the eggs off the heat", True),
        ("Retrying with backoff got rid of the 503s.", "Retrying with backoff", True),
        ("I upgraded the driver, but the crash is still there.", "upgraded the driver", False),
        ("I deployed on Friday and everything broke.", "deployed on Friday", False),
        ("I used less water this time but it was still dense.", "less water this time", False),
        ("Keeping tokens in localStorage turned out to be a bad idea.", "Keeping tokens in localStorage", False),
        ("Running them in parallel caused deadlocks.", "Running them in parallel", False),
        ("Raising the limit didn't fix the deadlock, it only delayed it.", "Raising the limit", False),
    ],
)
def test_what_was_done_and_came_of_it_is_told_in_many_ways(text: str, strategy: str, success: bool) -> None:
    fact = only(facts(("user", "Make it work"), ("assistant", text)))
    assert (fact.strategy, fact.success) == (strategy, success)


@pytest.mark.parametrize(
    "text",
    [
        "Bleeding the radiators had no effect, replacing the valve solved the problem.",
        "Bleeding the radiators did nothing, but replacing the valve fixed the heating.",
    ],
)
def test_what_one_thing_came_to_is_not_what_another_did(text: str) -> None:
    found = [(fact.strategy, fact.success) for fact in of_user(text)]
    assert found == [("Bleeding the radiators", False), ("replacing the valve", True)]


@pytest.mark.parametrize(
    ("answer", "success"),
    [
        ("That did it, thank you!", True),
        ("👍 worked like a charm", True),
        ("Perfect, that worked.", True),
        ("Works now, thanks", True),
        ("Didn't help, still the old address.", False),
        ("Did not work.", False),
        ("Tried that, no difference.", False),
        ("No luck, it still rejects me.", False),
    ],
)
def test_an_answer_is_about_what_was_advised(answer: str, success: bool) -> None:
    told = [("user", "The name leads to the old address."), ("assistant", "Run `resolvectl flush-caches`.")]
    fact = only(facts(*told, ("user", answer)))
    assert (fact.strategy, fact.success) == ("Run `resolvectl flush-caches`", success)
    assert fact.task == "The name leads to the old address"


def test_tests_that_pass_speak_for_what_was_done_before() -> None:
    done = "I replaced sleep(3) with an explicit wait. Then I ran the tests. All 34 tests pass."
    fact = only(facts(("user", "Fix the flaky test"), ("assistant", done)))
    assert (fact.strategy, fact.success) == ("replaced sleep(3) with an explicit wait", True)


@pytest.mark.parametrize(
    "text",
    [
        "The VPN fails after the update.",
        "The link leads to the old page.",
        "The button triggers the export.",
        "Safari doesn't work.",
        "It worked yesterday.",
        "I ran the tests. All tests pass.",
        "I opened the page and it was blank.",
        "I asked Tom and he fixed it.",
        "In an ideal world, we use one database.",
        "My son is sleeping now.",
        "When you open the page, the console shows an error.",
        "I'm hoping to make fewer mistakes going forward.",
        "It's important to stay positive.",
        "When you have time, run the tests.",
        "My kids are so excited about the summer.",
        "We answered the call and our team worked together.",
        "We cooked for them and I helped with the plates.",
    ],
)
def test_what_is_to_be_mended_or_was_only_looked_at_gives_nothing(text: str) -> None:
    assert of_user(text) == []


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("Please sign my mails with 'Best, Jo' from now on.", "sign my mails with 'Best, Jo'"),
        ("Reply in Portuguese going forward", "Reply in Portuguese"),
        ("Tabs over spaces, always.", "Tabs over spaces"),
        ("Every time you suggest a library, mention its license.", None),
        ("When you write SQL for me, uppercase the keywords.", None),
        ("It's important to me that you ask before deleting anything.", "ask before deleting anything"),
        ("Less jargon, please.", "Less jargon"),
        ("No bullet points please, write full sentences.", "no bullet points"),
        ("I don't eat gluten.", "don't eat gluten"),
        ("Don't ever email my clients directly.", "never email my clients directly"),
        ("My daughter is allergic to shellfish.", None),
        ("My cat Miso has kidney disease.", None),
        ("I just moved to Marseille.", "moved to Marseille"),
    ],
)
def test_standing_wishes_and_what_is_true_of_a_family_are_preferences(text: str, preference: str | None) -> None:
    fact = only(of_user(text))
    assert (fact.fact_type, fact.content) == (FactType.PREFERENCE, preference or text.strip("."))


@pytest.mark.parametrize(
    "text",
    [
        "Maria owns the billing service",
        "The weekly sync moved to Thursdays at 14:00",
        "We close the books on the 5th of each month",
        "We switched to pnpm last week",
        "The rate limit was raised to 500",
        "All our services log to Loki",
    ],
)
def test_who_has_what_and_what_has_changed_is_domain_knowledge(text: str) -> None:
    fact = only(of_user(text))
    assert (fact.fact_type, fact.content) == (FactType.DOMAIN_KNOWLEDGE, text)


def test_what_comes_before_the_point_is_passed_over() -> None:
    found = of_user("After hours of digging, we found that the leak was caused by a handler that never ends.")
    assert only(found).content == "the leak was caused by a handler that never ends"
    assert only(of_user("In this repo we only use dataclasses, never attrs.")).fact_type is FactType.DOMAIN_KNOWLEDGE


def test_a_no_takes_the_place_of_what_an_assistant_said_of_the_same() -> None:
    found = facts(
        ("assistant", "The production cluster runs in eu-west-1."), ("user", "No, production is in us-east-2.")
    )
    assert only(found).content == "Production is in us-east-2"


@pytest.mark.parametrize(
    "text",
    ["Our CTO is Lena. Oops, I got that wrong, it's Petra.", "Our CTO is Lena. Sorry, I mixed that up, it's Petra."],
)
def test_one_name_in_the_place_of_another_is_what_was_meant(text: str) -> None:
    fact = only(of_user(text))
    assert (fact.content, fact.supersedes) == ("Our CTO is Petra", "Our CTO is Lena")


def test_it_is_what_was_told_right_before_and_nothing_long_ago() -> None:
    long_ago = [("user", "How was it?"), ("user", "I baked a pie for the kids."), ("assistant", "Lovely!")]
    assert facts(*long_ago, ("user", "I also began to run."), ("user", "It helped me to sleep.")) == []
    fact = only(facts(("user", "The wifi drops. I moved the router. It works now!")))
    assert (fact.strategy, fact.success) == ("moved the router", True)


def test_what_is_so_is_no_task() -> None:
    found = facts(
        ("user", "The staging server listens on port 8443."),
        ("user", "Restarting the worker did not help with the memory leak."),
    )
    assert "8443" not in str(found[-1].task)


def test_a_task_is_told_without_the_question() -> None:
    found = facts(
        ("user", "Can you look at the nightly export?"), ("assistant", "I split it into chunks and that fixed it.")
    )
    assert only(found).task == "look at the nightly export"
