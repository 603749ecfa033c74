"""Writes src/headwater/web/locale/*.po: every message of the pages in every language. `make messages` runs it.

Messages come from the templates, the Python modules and the scripts of the pages, and from tables whose words are shown
(`shown_words`). A message that is new stays empty until somebody translates it, and one that is gone is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

from headwater.accounts.scopes import SCOPES
from headwater.app.account import THEMES
from headwater.app.people import ROLES
from headwater.app.sources import KIND_CHOICES
from headwater.errors import SourceFailure, all_errors
from headwater.http.problems import TITLES_BY_STATUS
from headwater.web.language import CATALOGUES, LOCALES, NAMES, SCRIPT_WORDS
from headwater.web.view import ENGLISH_PAGES

WEB = CATALOGUES.parent
KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "noted": None, "said": None}
JINJA = {"extensions": "jinja2.ext.i18n", "trim_blocks": "true", "lstrip_blocks": "true"}
HEADER = """# Headwater's pages: {name}. `make messages` adds what is new; whatever is empty has to be translated.
msgid ""
msgstr ""
"Language: {code}\\n"
"Plural-Forms: {plurals}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""
TIERS = ("high", "medium", "low")
OUTCOMES = ("ok", "unchanged", "empty", "failed", "deferred")


def shown_words() -> Iterator[str]:
    """Words of tables that are shown on pages."""
    yield from (error.title for error in all_errors() if not issubclass(error, SourceFailure))
    yield from (title for _, title in TITLES_BY_STATUS.values())
    for role, meaning in ROLES.items():
        yield from (role, meaning)
    yield from (scope.meaning for scope in SCOPES.values())
    yield from (name for _, name in KIND_CHOICES)
    yield from THEMES
    yield from (*TIERS, *OUTCOMES)


def template() -> Catalog:
    """Returns every message, untranslated. Those of scripts say so in a comment."""
    found = Catalog(charset="utf-8")
    for file in sorted(WEB.glob("templates/*.html")):
        if file.name not in ENGLISH_PAGES | {"charts.html"}:
            _add(found, file, "jinja2.ext:babel_extract", JINJA)
    for file in sorted(WEB.glob("*.py")):
        _add(found, file, "python", {})
    for message in shown_words():
        found.add(message)
    for file in sorted(WEB.glob("static/js/*.js")):
        _add(found, file, "javascript", {}, [SCRIPT_WORDS])
    return found


def _add(found: Catalog, file: Path, method: str, options: dict[str, str], comments: list[str] | None = None) -> None:
    for _, message, _, _ in extract_from_file(method, file, KEYWORDS, (), options):
        found.add(message, auto_comments=comments or [])


def translations(code: str) -> Catalog:
    """Returns what there is of a language."""
    file = CATALOGUES / f"{code}.po"
    if not file.exists():
        return Catalog(locale=LOCALES[code], charset="utf-8")
    with file.open("rb") as opened:
        return read_po(opened, locale=LOCALES[code])


def write(code: str, messages: Catalog) -> Catalog:
    """Writes the catalogue of a language: these messages with the translations that it has."""
    catalogue = translations(code)
    catalogue.update(messages, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    body = BytesIO()
    write_po(body, catalogue, width=120, omit_header=True, no_location=True)
    # A header without dates: the file changes only if a message does.
    header = HEADER.format(name=NAMES[code], code=code, plurals=catalogue.plural_forms)
    (CATALOGUES / f"{code}.po").write_text(header + body.getvalue().decode(), encoding="utf-8")
    return catalogue


def main() -> None:
    messages = template()
    for code in LOCALES:
        catalogue = write(code, messages)
        empty = sum(not one.string for one in catalogue if one.id)
        print(f"{code}: {len(catalogue)} messages, {empty} of them not translated")


if __name__ == "__main__":
    main()
