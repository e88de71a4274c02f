"""When two strategies are the same."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma.bootstrap import create_embedder
from alma.learning.strategies import contradicts, same_strategy
from alma.storage.nearest import cosines

EMBEDDER = create_embedder("local")


def cosine(one: str, other: str) -> float:
    left, right = EMBEDDER.encode_batch([one, other])
    return cosines(left, [right.to_bytes()])[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tested empty fields, invalid email, valid submission", "test empty fields, invalid e-mail, valid submission"),
        ("validate it field by field", "field-by-field validation"),
        ("Rotate the tires every 10,000 km", "Rotate the tyres every 10000 km"),
        ("Commit after each row", "Commit after every single row"),
        ("Keep sentences under 20 words", "Keep sentences shorter than 20 words"),
        ("Log in as admin and reset the counter", "Sign in as admin, reset the counter"),
        ("Send a summary after the meeting", "After the meeting send a summary"),
        ("After signing the contract send a copy", "Send a copy after signing the contract"),
        ("Nunca publicar sin revisión", "No publicar nunca sin revisión"),
        ("Никогда не ездить без шлема", "Не ездить без шлема"),
        ("Watch the logs during the deploy", "Watch logs while deploying"),
        ("Send the receipt after payment", "Send the receipt upon payment"),
        ("Increase the memory limit of the container", "Raise the container's memory limit"),
        ("Cite at least two sources", "Cite two or more sources"),
        ("Nunca desplegar los viernes", "No desplegar nunca los viernes"),
        ("Mai usare la cache", "Non usare mai la cache"),
        ("Use explicit waits instead of sleep", "Used explicit waits rather than sleeping"),
        ("Run database migrations before deploying", "deploy only after running the database migrations"),
        ("Split the task into smaller steps", "break the task down into small steps"),
        ("Cache the API responses", "use caching for responses of the API"),
        ("caching", "Use caching"),
        ("Ask the user for clarification", "Request clarification from the user"),
        ("Seed the database before each test", "Before every test, seed the database"),
        ("Validate each field separately", "Validate the fields one by one"),
        ("I used incremental validation", "incremental validation"),
        ("never use sleep() in tests", "don't use sleep() in tests"),
        ("exponential back-off", "Use exponential backoff"),
        ("summarise the thread", "Summarize the thread"),
        ("Write the summary last", "wrote the summary last"),
        ("Add an index on the foreign key column", "Create an index for the foreign-key column"),
        ("Call the prospect in the morning", "Phone the prospect in the morning"),
        ("Cross-check the claim in two independent sources", "Verify the claim with two independent sources"),
        ("Increase the timeout to 30 seconds", "Raise the timeout to 30 seconds"),
        ("Reduce the batch size", "Lower the batch size"),
        ("Quote the original source", "Cite the original source"),
        ("Denormalise the read model", "Denormalize the read model"),
        ("Sear the steak before baking it", "Bake the steak after searing it"),
        ("Store secrets in a vault", "Keep the secrets in a vault"),
        ("Batch inserts in groups of 500", "Insert in batches of 500"),
        ("Retry up to 3 times", "Retry up to three times"),
        ("Wait two minutes before retrying", "Wait 2 min before retrying"),
        ("Retry twice with a delay", "Retry two times with a delay"),
        ("Set the timeout to thirty seconds", "Set the timeout to 30 s"),
        ("Break the problem into smaller steps", "Decompose the problem into smaller steps"),
        ("Keep answers short", "Keep responses short"),
        ("Keep responses short", "keep replies short"),
        ("Provide step-by-step instructions", "Give step by step instructions"),
        ("Restart the service", "Reboot the service"),
        ("Read the logs first", "First look at the logs"),
        ("Keep the session for 1 hour", "keep the session for 60 minutes"),
        ("Delete logs older than 7 days", "remove logs that are older than a week"),
        ("Alert when CPU is above 80%", "alert if CPU exceeds 80%"),
        ("Respond within 24 hours", "respond in less than one day"),
        ("Poll every 60 seconds", "poll every minute"),
        ("Turn the feature flag off", "disable the feature flag"),
        ("Switch the heating on before sunrise", "turn on the heating before sunrise"),
        ("Clear the cache and retry", "clear the cache and try again"),
        ("Use a hash map", "use hashmap"),
        ("Keep the counters in a hash map", "keep counters in a hashmap"),
        ("Prefer composition over inheritance", "favour composition over inheritance"),
        ("Invoke the API with an idempotency key", "call the API with an idempotency key"),
        ("Lead with the conclusion", "start with the conclusion"),
        ("Mock the network calls", "Mock network requests"),
        ("Search for data-testid attributes", "look for data-testid attributes"),
        ("Summarize the document section by section", "Summarise each section of the document"),
        ("Optimise the colour palette", "Optimize the color palette"),
        ("Cancelled the stale jobs", "Canceled the stale jobs"),
        ("Use type hints everywhere", "Use type hints in all places"),
        ("Refuse to retry on 500 errors", "Never retry on 500 errors"),
        ("Turn off the cache", "Disable the cache"),
        ("Deploy unless it is Friday", "Deploy if it is not Friday"),
        ("Copy the data from staging to production", "Copy the data to production from staging"),
        ("Translate from English to German", "Translate English into German"),
        ("Alert when load > 80", "Alert when the load is above 80"),
        ("Use gpt-4-turbo for drafts", "use GPT-4 Turbo for drafts"),
        ("When the build fails, restart it", "Restart it when the build fails"),
        ("Use composition instead of inheritance", "Prefer composition over inheritance"),
        ("Compare the output with the expected values", "Compare the expected values with the output"),
        ("Verify the backup by restoring it", "Restore the backup to verify it"),
        ("Roll back the deployment immediately", "Immediately roll the deployment back"),
        ("**Use caching** for reads", "- Use caching for reads"),
        ("✅ Use caching", "Use caching"),
        ("Validate name, email and phone", "Validate phone, email and name"),
        ("Start the container, then run the tests", "Run the tests after starting the container"),
        ("Suggest an alternative to the customer", "Recommend an alternative to the customer"),
    ],
)
def test_paraphrases_are_the_same(one: str, other: str) -> None:
    assert same_strategy(one, other, cosine(one, other))
    assert not contradicts(one, other, cosine(one, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Usa sempre la cache", "Non usare mai la cache"),
        ("Commit after every row", "Commit once after all rows"),
        ("Keep sentences longer than 20 words", "Keep sentences shorter than 20 words"),
        ("Log in as admin", "Log out as admin"),
        ("Send a summary after the meeting", "Before the meeting send a summary"),
        ("Before the meeting send a summary", "After the meeting send a summary"),
        ("Nie ohne Helm fahren", "Ohne Helm fahren"),
        ("Nie ohne Helm fahren", "Nie mit Helm fahren"),
        ("Ne jamais partir sans sauvegarde", "Partir sans sauvegarde"),
        ("Pay the invoice before delivery", "Pay the invoice upon delivery"),
        ("Check the oil before driving", "Check the oil while driving"),
        ("Check the oil after driving", "Check the oil during driving"),
        ("Use both caches", "Use neither cache"),
        ("Use either cache", "Use neither cache"),
        ("Trust everybody", "Trust nobody"),
        ("Scale up", "Scale out"),
        ("Roll out", "Roll up"),
        ("Use 3 or more retries", "Use 3 or fewer retries"),
        ("always retry", "never retry"),
        ("Use caching", "Avoid caching"),
        ("Use caching", "Do not use caching"),
        ("Use caching", "Don't use caching"),
        ("retry", "rollback"),
        ("strategy A", "strategy B"),
        ("Use the production database for tests", "Use a test database for production"),
        ("Mount the volume read-only", "Mount the volume read-write"),
        ("Raise the timeout", "Lower the timeout"),
        ("Call the customer", "Email the customer"),
        ("Sample with replacement", "Sample without replacement"),
        ("Peel the potatoes before boiling", "Peel the potatoes after boiling"),
        ("Convert XML to JSON", "Convert JSON to XML"),
        ("Scale horizontally", "Scale vertically"),
        ("Commit every 100 rows", "Commit every 1000 rows"),
        ("use model gpt-4", "use model gpt-3.5"),
        ("Use PostgreSQL", "Use SQLite"),
        ("run migrations before deploy", "run migrations after deploy"),
        ("increase the pool size", "decrease the pool size"),
        ("Use synchronous requests", "Use asynchronous requests"),
        ("Write the failing test first", "Write the documentation first"),
        ("turn on verbose logging", "turn off verbose logging"),
        ("merge the branches", "rebase the branches"),
        ("encrypt the payload", "decrypt the payload"),
        ("allow all origins", "block all origins"),
        ("use gpt-4", "use gpt-4o"),
        ("use weak references", "use strong references"),
        ("inbound calls", "outbound calls"),
        ("It's good to mock", "It isn't good to mock"),
        ("hardly ever restart the pod", "always restart the pod"),
        ("use blocking io", "use non-blocking io"),
        ("Write tests then code", "Write code then tests"),
        ("prefer composition over inheritance", "prefer inheritance over composition"),
        ("translate English to German", "translate German to English"),
        ("import from A into B", "import from B into A"),
        ("Copy data from staging to production", "Copy data from production to staging"),
        ("Process files from oldest to newest", "Process files from newest to oldest"),
        ("Migrate from MySQL", "Migrate to MySQL"),
        ("Replace tabs with spaces", "Replace spaces with tabs"),
        ("Prefer local over remote files", "Prefer remote over local files"),
        ("Prefer speed to accuracy", "Prefer accuracy to speed"),
        ("Trust the cache more than the database", "Trust the database more than the cache"),
        ("Retry if the request is idempotent", "Retry unless the request is idempotent"),
        ("Use caching unless memory is low", "Use caching when memory is low"),
        ("Deploy except on Fridays", "Deploy on Fridays"),
        ("Make the client retry when the server fails", "Make the server retry when the client fails"),
        ("Increase timeout, decrease retries", "Decrease timeout, increase retries"),
        ("Let Alice review the code that Bob wrote", "Let Bob review the code that Alice wrote"),
        ("Ask the manager to review the developer's work", "Ask the developer to review the manager's work"),
        ("Let A call B", "Let B call A"),
        ("Retry on timeouts but not on 500 errors", "Retry on 500 errors but not on timeouts"),
        ("Sort by date then by name", "Sort by name then by date"),
        ("Stop before the limit", "Stop after the limit"),
        ("Refuse to retry on 500 errors", "Retry on 500 errors"),
        ("Decline to answer medical questions", "Answer medical questions"),
        ("Forbid retries on 500 errors", "Retry on 500 errors"),
        ("gpt-4", "gpt-4-turbo"),
        ("Use mistral-7b", "Use mistral-7b-instruct"),
        ("Use command-r for drafts", "Use command-r-plus for drafts"),
        ("Ship the gpt-4o-audio model", "Ship the gpt-4o model"),
        ("Use gpt-4 for drafts", "Use gpt-4 turbo for drafts"),
        ("Build the app with React", "Build the app with React Native"),
        ("Deploy on Friday afternoon", "Deploy on Monday morning"),
        ("C", "C++"),
        ("Rewrite the parser in C++", "Rewrite the parser in C#"),
        ("A", "A*"),
        ("n>5", "n<5"),
        ("keep temperature > 0.5", "keep temperature < 0.5"),
        ("+x", "-x"),
        ("✅", "❌"),
        ("👍 use emojis", "👎 use emojis"),
        ("Set x = 5", "Set x != 5"),
        ("Offset by -1", "Offset by 1"),
        ("Keep 5% of rows", "Keep 5 rows"),
        ("It costs $5 to run", "It costs €5 to run"),
        ("Retry at least 3 times", "Retry up to 3 times"),
        ("Use HTTP for internal calls", "Use HTTPS for internal calls"),
        ("Query PostGIS for shapes", "Query Postgres for shapes"),
        ("Check the transaction before publishing", "Check the translation before publishing"),
        ("Use the internal clock", "Use the interval clock"),
        ("Use the product database for reports", "Use the production database for reports"),
        ("Log the conversation of each user", "Log the conversion of each user"),
        ("Use the custom settings page", "Use the customer settings page"),
        ("Check the author of the request", "Check the authorization of the request"),
        ("Use few-shot prompts", "Use zero-shot prompts"),
        ("Test the API only", "Test the API too"),
        ("Fix all failing tests", "Fix some failing tests"),
        ("Test the sign-in form", "Test the sign-up form"),
        ("Cache verwenden", "Cache nicht verwenden"),
        ("utiliser le cache", "ne pas utiliser le cache"),
        ("usar o cache", "não usar o cache"),
        ("usare sempre la cache", "non usare mai la cache"),
        ("использовать кэш", "никогда не использовать кэш"),
        ("gebruik de cache", "gebruik de cache niet"),
        ("använd cachen", "använd inte cachen"),
        ("nie restartuj usługi", "restartuj usługę"),
        ("使用缓存", "不使用缓存"),
        ("キャッシュを使う", "キャッシュを使わない"),
        ("캐시 사용", "캐시 사용 안 함"),
        ("استخدم الذاكرة", "لا تستخدم الذاكرة"),
        ("कैश का उपयोग करें", "कैश का उपयोग न करें"),
        ("Mix A into B", "mix B into A"),
        ("Measure twice, cut once", "measure once, cut twice"),
        ("Keep the session for 1 hour", "keep the session for 1 day"),
        ("Expire tokens after 15 minutes", "expire tokens after 15 seconds"),
        ("Respond within 24 hours", "respond after 24 hours"),
        ("Turn the flag off before the deployment", "turn the flag on before the deployment"),
        ("Turn the page on the left", "enable the page the left"),
        ("Alert when CPU is above 80%", "alert when CPU is below 80%"),
    ],
)
def test_other_strategies_are_others_however_alike_they_look(one: str, other: str) -> None:
    assert not same_strategy(one, other, cosine(one, other))


def test_a_mistyped_word_is_forgiven_where_the_meaning_agrees() -> None:
    one, other = "Clean up the worksapce folder", "Clean up the workspace folder"
    assert same_strategy(one, other, 0.9)
    assert not same_strategy(one, other, 0.5)


def test_a_long_strategy_is_read_in_a_moment() -> None:
    for text in ("a-" * 20_000, "ab1-" * 10_000, "A. " * 10_000, "* " * 10_000, "then A calls B " * 3_000):
        began = time.process_time()
        assert same_strategy(text, f"{text} once more", 0.9) in (True, False)
        assert time.process_time() - began < 10


@given(st.text(max_size=60))
def test_every_strategy_is_the_same_as_itself(text: str) -> None:
    assert same_strategy(text, text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_order_of_the_two_does_not_matter(one: str, other: str) -> None:
    assert same_strategy(one, other, 0.9) == same_strategy(other, one, 0.9)
    assert contradicts(one, other, 0.9) == contradicts(other, one, 0.9)
