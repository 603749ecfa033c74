"""The API describes itself, and the description is right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from api.running import Client, Running, routes
from headwater.api.document import openapi
from headwater.app.shapes import examples
from headwater.web import reference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md"
NOTE = "<!-- Made by scripts/reference.py from the code. Change it there. -->"


def test_the_written_reference_is_what_the_routes_say() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == reference.markdown(openapi(), NOTE), "run `.venv/bin/python scripts/reference.py`"


def test_every_route_of_the_api_is_described(headwater: Running) -> None:
    described = {(method.upper(), path) for path, methods in openapi()["paths"].items() for method in methods}
    answered = {(method, path) for method, path in routes(headwater) if path.startswith("/api/")}
    assert answered - described == {("GET", "/api/openapi.json"), ("GET", "/api/docs")}


def test_every_operation_has_a_summary_and_every_json_answer_an_example() -> None:
    for operation in reference.operations(openapi()):
        assert operation.summary
        if operation.status != "204" and operation.path not in ("/api/opml", "/metrics", "/api/live"):
            assert operation.answer, operation.path
        assert "…" not in (operation.answer or ""), f"{operation.path} has a field without an example"


def test_errors_are_described_as_problems() -> None:
    for methods in openapi()["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if status >= "400":
                    assert list(answer["content"]) == ["application/problem+json"]


def test_the_document_and_its_page_are_served(program: Client) -> None:
    document: dict[str, Any] = program.get("/api/openapi.json").json()
    assert document == openapi()
    page = program.get("/api/docs", Accept="text/html").text
    for operation in reference.operations(document):
        assert f'id="{operation.anchor}"' in page
    assert not re.search(r'(src|href)="(https?:)?//', page), "nothing is loaded from elsewhere"


def test_the_examples_have_the_shape_of_the_answers() -> None:
    schemas = openapi()["components"]["schemas"]
    for name, example in examples().items():
        assert schemas[name]["example"] == example
        assert list(example) == list(schemas[name]["properties"]), name
