"""Run what plugs into the frameworks whose packages disagree with each other, each in an environment of its own.

For each framework: its example twice, where the second process must remember what the first was told, and the tests in
`check_*.py`. Names of frameworks as arguments choose some of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv" / "envs"
QUIET = {"OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TESTING": "true"}


class Framework(NamedTuple):
    """An example, and what its agent says in the first process and in the second one."""

    example: str
    first: str
    second: str


FRAMEWORKS = {
    "pydantic-ai": Framework("pydantic_ai_conversation.py", "(nothing)", "You asked before: Where is my order?"),
    "llama-index": Framework("llama_index_memory.py", "(nothing)", "You asked before: Where is my order?"),
    "crewai": Framework("crewai_memory.py", "I know of no allergy.", "You are allergic to peanuts."),
    "google-adk": Framework("google_adk_memory.py", "I know nothing yet.", "I know of the green parcel."),
    "autogen": Framework("autogen_memory.py", "I know of no allergy.", "You are allergic to peanuts."),
    "agent-framework": Framework("agent_framework_memory.py", "(nothing)", "You asked before: Where is my order?"),
    "strands": Framework("strands_memory.py", "I know of no allergy.", "You are allergic to peanuts."),
}


def python_of(name: str) -> str:
    """The Python of a framework's environment, which is made or brought up to date first."""
    folder, pinned = ENVIRONMENTS / name, ROOT / "requirements" / "frameworks" / f"{name}.txt"
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists() or done.read_text() != pinned.read_text():
        done.unlink(missing_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        # Many times faster, where it is there.
        uv = shutil.which("uv")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install = pip if uv is None else [uv, "pip", "install", "--quiet", "--python", str(python)]
        subprocess.run([*install, "--no-deps", "-r", str(pinned)], check=True)
        subprocess.run([*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
        done.write_text(pinned.read_text())
    return str(python)


def examined(name: str, framework: Framework) -> list[str]:
    """What is wrong with a framework's adapter."""
    python, wrong = python_of(name), []
    with tempfile.TemporaryDirectory() as folder:
        for said in (framework.first, framework.second):
            command = [python, str(ROOT / "examples" / framework.example)]
            ran = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | QUIET
            )
            if f"assistant: {said}\n" not in ran.stdout:
                wrong.append(f"the example did not say {said!r}:\n{ran.stdout}{ran.stderr}")
    here = Path(__file__).parent
    options = ["-q", "-p", "no:cacheprovider", "-c", str(here / "pytest.ini"), "--import-mode=importlib"]
    options += ["--rootdir", str(here), "--confcutdir", str(here)]
    tests = [python, "-m", "pytest", *options, str(here / f"check_{name.replace('-', '_')}.py")]
    ran = subprocess.run(tests, capture_output=True, text=True, check=False, env=os.environ | QUIET)
    if ran.returncode:
        wrong.append(ran.stdout + ran.stderr)
    return wrong


def main(names: list[str]) -> int:
    """Examine the frameworks, and print a line for each."""
    unknown = set(names) - set(FRAMEWORKS)
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(FRAMEWORKS)}")
        return 2
    failed = 0
    for name in names or FRAMEWORKS:
        started = time.monotonic()
        wrong = examined(name, FRAMEWORKS[name])
        failed += bool(wrong)
        print(f"{name:16} {'FAILED' if wrong else 'passed'} in {time.monotonic() - started:.0f} s", flush=True)
        for each in wrong:
            print(each)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
