"""A first day with ALMA: three agents of an online bookshop learn, facts change, and fourteen questions are asked.

    python examples/first_day.py            # in a folder that is thrown away afterwards
    python examples/first_day.py my-folder  # keeps the store, to look at with the `alma` command

For each question it prints what an agent is handed over, and whether that is right: the strategy that worked, a warning
of what failed, the fact that holds now, or nothing where nothing is known.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from alma import ALMA

# What each agent did: task, whether it worked, how, and what went wrong.
OUTCOMES: list[tuple[str, str, str, str, str | None]] = [
    ("web", "Test the sign-up form", "success", "Submit it empty first, then with a wrong e-mail address", None),
    ("web", "Check the registration page", "success", "first leave every field blank, then try an invalid mail", None),
    ("web", "Test the newsletter form", "success", "empty submission first, a malformed e-mail address next", None),
    ("web", "Find out why the product page is slow", "success", "Profile the page before changing any code", None),
    (
        "web",
        "The search page takes five seconds to load",
        "success",
        "measure with the profiler first, code later",
        None,
    ),
    ("web", "Speed up the start page", "success", "run the profiler and only then touch the code", None),
    ("web", "Test the checkout page", "failure", "Wait for ten seconds with sleep(10)", "TimeoutError: no button"),
    ("web", "Test the checkout page on a phone", "failure", "sleep for ten seconds", "TimeoutError: no pay button"),
    ("web", "Test the payment step of the checkout", "failure", "Wait ten seconds with sleep", "TimeoutError: #pay"),
    ("web", "Test the gift card page", "success", "Wait until the price is visible, then click", None),
    ("web", "Add a dark theme", "success", "Replace fixed colours by CSS variables", None),
    (
        "web",
        "Make the site usable with a keyboard",
        "success",
        "Tab through every page and note where focus is lost",
        None,
    ),
    (
        "web",
        "Translate the site into Danish",
        "success",
        "Export all strings to one file and let a native speaker check",
        None,
    ),
    ("web", "Update the image carousel", "failure", "Upgrade to the newest major version at once", "12 broken tests"),
    ("ops", "Deploy the shop to production", "success", "Send 5 % of the traffic to it and watch the errors", None),
    ("ops", "Roll out the new payment service", "success", "expose it to a twentieth of the users first", None),
    (
        "ops",
        "Release the search service",
        "success",
        "canary with five percent of traffic, keep an eye on errors",
        None,
    ),
    ("ops", "Change the schema of the orders table", "success", "Take a backup, then migrate on a copy first", None),
    ("ops", "Add a column to the customers table", "success", "back up the database and rehearse on a copy", None),
    ("ops", "Rename a column of the invoices table", "success", "backup first, try the migration on a clone", None),
    (
        "ops",
        "The disk of the log server is full",
        "failure",
        "Delete the oldest logs by hand",
        "full again after a day",
    ),
    ("ops", "Log server ran out of space", "failure", "remove old log files manually", "full again the next night"),
    ("ops", "No space left on the logging machine", "success", "Rotate logs daily and keep a week", None),
    ("ops", "Renew the TLS certificate", "success", "Let certbot renew it and reload nginx", None),
    (
        "ops",
        "Rotate the database password",
        "success",
        "Create a second user, switch the services, drop the old one",
        None,
    ),
    ("ops", "Restore last night's backup", "success", "Restore into a new database and compare row counts", None),
    ("ops", "Upgrade PostgreSQL", "success", "Use logical replication and switch over at night", None),
    ("ops", "Cut the cloud bill", "success", "Switch off the staging machines outside of office hours", None),
    (
        "support",
        "A customer got the wrong book",
        "success",
        "Apologise, send the right one today, let them keep it",
        None,
    ),
    ("support", "Wrong title in the parcel", "success", "say sorry, ship the correct book at once, no return", None),
    (
        "support",
        "Somebody received another book than ordered",
        "success",
        "apology and the right copy the same day",
        None,
    ),
    (
        "support",
        "A parcel has not arrived after two weeks",
        "success",
        "Ask the carrier first, then send it again",
        None,
    ),
    ("support", "Parcel missing for 15 days", "success", "open a trace with the carrier before reshipping", None),
    (
        "support",
        "Customer wants a refund for an e-book",
        "failure",
        "Refuse because it was downloaded",
        "1-star review",
    ),
    ("support", "E-book refund request", "failure", "Decline since the file was already downloaded", "angry complaint"),
    ("support", "Refund for an e-book bought by mistake", "success", "Offer a voucher of the same value", None),
    (
        "support",
        "A school asks for thirty copies",
        "success",
        "Quote with the education discount and a delivery date",
        None,
    ),
    (
        "support",
        "An author complains about a bad review",
        "success",
        "Explain the review policy and remove only insults",
        None,
    ),
    ("support", "Customer cannot log in", "success", "Send a reset link and check that the mail was delivered", None),
    ("support", "Invoice with the wrong VAT number", "success", "Cancel the invoice and issue a corrected one", None),
]

# What is true, in the order in which it was told: later facts replace earlier ones.
FACTS: list[tuple[str, str]] = [
    ("ops", "Production runs in eu-central-1"),
    ("ops", "The orders database is PostgreSQL 15"),
    ("ops", "Backups are kept for 30 days"),
    ("support", "Parcels are shipped with DHL"),
    ("support", "Orders above 40 euros ship for free"),
    ("web", "The site supports English, German and French"),
    ("ops", "Prod is in eu-west-1 now"),
    ("support", "Since March our parcels go out with UPS"),
]

# What the owner wants: topic and wish.
PREFERENCES: list[tuple[str, str]] = [
    ("style", "Long reports with every detail"),
    ("language", "Write to me in German"),
    ("style", "Keep reports to five lines at most"),
    ("meetings", "No meetings before ten"),
]


@dataclass(frozen=True)
class Question:
    """A question: what the answer must contain (any of), what it must not, and what kind of answer it is."""

    agent: str
    task: str
    kind: str  # strategy, warning, fact, preference or nothing
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()  # texts that may only be shown with a mark


QUESTIONS = [
    Question("web", "Try out the form for new customers", "strategy", ("empty", "blank")),
    Question("web", "Why does the basket page load so slowly?", "strategy", ("profile",)),
    Question("ops", "Ship the recommendation service to prod", "strategy", ("5 %", "twentieth", "five percent")),
    Question("ops", "Alter the schema of the products table", "strategy", ("backup", "back up")),
    Question("support", "The buyer found a different novel in the box", "strategy", ("apolog", "sorry")),
    Question("web", "Write a browser test for the checkout page", "warning", ("sleep", "ten seconds")),
    Question("support", "Someone asks for their money back for an e-book", "warning", ("refuse", "decline")),
    Question("ops", "Which region does production run in?", "fact", ("eu-west-1",), superseded=("eu-central-1",)),
    Question("support", "Which carrier do we ship parcels with?", "fact", ("UPS",), superseded=("DHL",)),
    Question("ops", "Write the weekly report", "preference", ("five lines",), superseded=("every detail",)),
    Question("web", "Bake a cake for the office party", "nothing"),
    Question("ops", "Plan a holiday in Portugal", "nothing"),
    Question("support", "Write a poem about autumn", "nothing"),
    Question("web", "Repair the flat tyre of a bicycle", "nothing"),
]


def tell(alma: ALMA) -> None:
    """Everything that happened, in its order."""
    for agent, task, outcome, strategy, error in OUTCOMES:
        alma.learn(agent, task, outcome, strategy, error_message=error)
    for agent, fact in FACTS:
        alma.add_domain_knowledge(agent, "shop", fact)
    for category, wish in PREFERENCES:
        alma.add_user_preference("owner", category, wish)


def ask(alma: ALMA, question: Question) -> tuple[str, str]:
    """What is handed over for a question, and whether that is right, wrong, or stale without a mark."""
    user = "owner" if question.kind == "preference" else None
    prompt = alma.retrieve(question.task, agent=question.agent, user_id=user).to_prompt(max_tokens=600)
    advice = alma.recommend(question.task, agent=question.agent)
    shown = "\n".join(part for part in (prompt, f"To do: {advice.strategy}" if advice.strategy else "") if part)
    return shown or "(nothing)", verdict(question, shown, advice.strategy)


def verdict(question: Question, shown: str, advised: str | None) -> str:
    """Whether what is shown answers the question."""
    text = shown.lower()
    if question.kind == "nothing":
        return "wrong" if shown else "right"
    if not any(part.lower() in text for part in question.any_of):
        return "wrong"
    if any(part.lower() in text for part in question.none_of):
        return "wrong"
    if question.kind == "strategy" and not any(part.lower() in (advised or "").lower() for part in question.any_of):
        return "wrong"
    if question.kind == "warning":
        warned = text.partition("## avoid these patterns")[2]
        if not any(part.lower() in warned for part in question.any_of):
            return "wrong"
    return "unmarked" if any(not is_marked(text, part.lower()) for part in question.superseded) else "right"


def is_marked(text: str, stale: str) -> bool:
    """Whether a text that is out of date is not shown, or with a note that says so."""
    lines = text.splitlines()
    shown = [place for place, line in enumerate(lines) if stale in line and not line.lstrip().startswith("note:")]
    return all(lines[place + 1 : place + 2] and "note: " in lines[place + 1] for place in shown)


def main(folder: Path) -> None:
    """Tell everything, ask everything, and print it."""
    with ALMA.quickstart(project_id="bookshop", path=folder / "alma.db") as alma:
        tell(alma)
        verdicts = []
        for question in QUESTIONS:
            shown, said = ask(alma, question)
            verdicts.append(said)
            print(f"--- {question.agent}: {question.task}  [{said}]\n{shown}\n")
    print(f"{verdicts.count('right')} of {len(verdicts)} right")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
