"""Everything that is declared is documented, the documents say what the code says, and the site is complete."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from headwater import __version__, wire
from headwater.cli.session import every
from headwater.crawl.monitors import WATCHED
from headwater.server import create_app
from headwater.settings import load
from headwater.work.periodic import JOBS
from people.audited import unknown

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GENERATED = ["settings", "commands", "events", "errors", "schedule", "scopes", "api", "metrics"]


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    """The pages that scripts/reference.py makes, by their path below docs/."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return dict(module.documents())
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GENERATED)
def test_the_reference_says_what_the_code_declares(name: str, generated: dict[str, str]) -> None:
    assert read(f"reference/{name}.md") == generated[f"reference/{name}.md"], "run `make docs`"


def test_every_generated_page_is_compared(generated: dict[str, str]) -> None:
    assert generated.keys() == {f"reference/{name}.md" for name in GENERATED} | {"promises.md"}


def test_the_architecture_page_names_only_files_that_exist_and_every_folder() -> None:
    page = read("architecture.md")
    package = ROOT / "src" / "headwater"
    named = [
        word.strip("`.,;:()") for word in page.split() if word.startswith("`") and word.strip("`.,;:()").endswith(".py")
    ]
    assert named
    for name in named:
        assert (package / name).is_file() or (ROOT / name).is_file(), f"docs/architecture.md names {name}"
    for folder in package.iterdir():
        if (folder / "__init__.py").is_file():
            assert f"`{folder.name}/" in page, f"docs/architecture.md does not speak of {folder.name}/"


def test_every_alert_is_named_where_alerts_are_described() -> None:
    for alert in WATCHED:
        assert f"| `{alert}` |" in read("reference/tiers.md")
        assert re.search(rf"\b{alert}\b", read("reference/events.md")), alert


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("incremental", "Sources of the pool get their tiers automatically, every half hour."),
        ("low-quality", "Every four hours, pool sources"),
        ("warm-up", "Every two hours, and on `headwater crawl --warm-up`"),
        ("count-visits", "Every minute, the visits of the current hour"),
        ("monitor-api-calls", "checks the requests to Reddit every minute"),
        ("monitor-cache-health", "the other two every five minutes"),
        ("monitor-crawler-health", "the other two every five minutes"),
    ],
)
def test_the_page_on_tiers_and_the_schedule_agree(name: str, words: str) -> None:
    spans = {"half hour": "30 min", "four hours": "4 h", "two hours": "2 h", "five minutes": "5 min", "minute": "1 min"}
    said = next(span for word, span in spans.items() if word in words)
    assert [every(job.every) for job in JOBS if job.name == name] == [said]
    assert words in " ".join(read("reference/tiers.md").split())


def test_the_version_has_a_section_in_the_changelog() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)", headings[1])


def test_pages_outside_the_site_link_only_to_files_that_exist() -> None:
    for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        for link in re.findall(r"\]\((?!https?:|mailto:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
            assert (ROOT / link).exists(), f"{page} links to {link}"


def test_hooks_before_a_commit_load_nothing() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (.+)", hooks) == ["local"]
    assert set(re.findall(r"language: (.+)", hooks)) == {"system"}


def test_the_site_is_built_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) >= len(list(DOCS.rglob("*.md")))
    for page in pages:
        loaded = re.findall(r'<(?:script|img|link)\b[^>]*(?:src|href)="([^"]*)', page.read_text(encoding="utf-8"))
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == [], page.name


def test_every_route_and_command_that_writes_is_known_to_the_walk_of_the_audit_log(tmp_path: Path) -> None:
    with closing(wire.open_parts(load({"HEADWATER_DATABASE_URL": f"sqlite:///{tmp_path / 'headwater.db'}"}))) as parts:
        assert unknown(create_app(parts)) == []
