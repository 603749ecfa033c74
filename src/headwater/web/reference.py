"""The reference of the API for people, from its OpenAPI document: a page of this server and `docs/reference/api.md`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastapi import Request
from markupsafe import Markup, escape
from starlette.responses import Response

from headwater.http.state import WithParts
from headwater.web.view import page_router, show

DEFAULT_HOME = "http://127.0.0.1:8080"  # where a server is unless it is told otherwise

router = page_router()


class Parameter(NamedTuple):
    name: str
    where: str
    kind: str
    meaning: str


class Operation(NamedTuple):
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Parameter]
    request: str | None
    status: str
    answer: str | None
    home: str
    scope: str | None

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", f"{self.method} {self.path}".lower()).strip("-")

    @property
    def curl(self) -> str:
        path = self.path.replace("{source_id}", "12").replace("{post_id}", "4711").replace("{letter_id}", "3")
        path = path.replace("{webhook_id}", "3").replace("{delivery_id}", "912").replace("{group_id}", "4711")
        path = path.replace("{token_id}", "5").replace("{session_id}", "9").replace("{user_id}", "7")
        path = path.replace("{invitation_id}", "3").replace("{tweet_id}", "1876543210987654321")
        path = path.replace("{task_id}", "0199f1de-7a10-7c3e-9d0a-5f3a1c2b4d6e")
        words = ["curl"] + ([f"-X {self.method}"] if self.method != "GET" else [])
        words += ['-H "Authorization: Bearer $TOKEN"']
        if self.request:
            words += [f"--json '{json.dumps(json.loads(self.request))}'"]
        return " ".join([*words, self.home + path])


def operations(document: Mapping[str, Any], home: str = DEFAULT_HOME) -> list[Operation]:
    """Returns what can be asked of the server at `home`, in the order of the routes."""
    schemas = document["components"]["schemas"]
    return [
        _operation(path, method, operation, schemas, home)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def markdown(document: Mapping[str, Any], note: str) -> str:
    """Writes the reference as Markdown. `note` is a comment that says how it was made."""
    parts = ["# HTTP API", note.strip(), document["info"]["description"].strip()]
    parts.append("A running server has this page at `/api/docs` and the OpenAPI document at `/api/openapi.json`.")
    for operation in operations(document):
        parts.append(f"## {operation.method} {operation.path}")
        parts.append(f"{operation.summary}. {operation.description}".strip())
        parts.append(f"Scope: `{operation.scope}`." if operation.scope else "It needs no credentials.")
        if operation.parameters:
            rows = [f"| `{one.name}` | {one.where} | {one.kind} | {one.meaning} |" for one in operation.parameters]
            parts.append("\n".join(["| parameter | in | type | meaning |", "|---|---|---|---|", *rows]))
        parts.append(f"```\n{operation.curl}\n```")
        if operation.answer:
            parts.append(f"Answers {operation.status}:\n```json\n{operation.answer}\n```")
        else:
            parts.append(f"Answers {operation.status}.")
    return "\n\n".join(parts) + "\n"


def _operation(
    path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any], home: str
) -> Operation:
    status = next(iter(operation["responses"]))
    return Operation(
        method.upper(),
        path,
        operation["summary"],
        operation.get("description", ""),
        [_parameter(one) for one in operation.get("parameters", [])],
        _example_of(operation.get("requestBody", {}), schemas),
        status,
        _example_of(operation["responses"][status], schemas),
        home,
        operation.get("x-scope"),
    )


def _parameter(parameter: Mapping[str, Any]) -> Parameter:
    schema = parameter["schema"]
    kinds = [one["type"] for one in schema.get("anyOf", [schema]) if one.get("type") not in (None, "null")]
    return Parameter(parameter["name"], parameter["in"], " or ".join(kinds), parameter.get("description", ""))


def _example_of(body: Mapping[str, Any], schemas: Mapping[str, Any]) -> str | None:
    schema = body.get("content", {}).get("application/json", {}).get("schema")
    return json.dumps(_example(schema, schemas), indent=2, ensure_ascii=False) if schema else None


def _example(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _example(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for known in ("example", "const"):
        if known in schema:
            return schema[known]
    for several in ("examples", "enum"):
        if several in schema:
            return schema[several][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], schemas)
    if schema.get("type") == "object":
        return {name: _example(part, schemas) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [_example(schema["items"], schemas)]
    return {"integer": 1, "number": 1.0, "boolean": True}.get(schema.get("type", ""), "…")


def introduction(document: Mapping[str, Any]) -> list[Markup]:
    """Returns the paragraphs of the introduction, as HTML."""
    paragraphs = document["info"]["description"].strip().split("\n\n")
    return [_marked_up(" ".join(paragraph.split())) for paragraph in paragraphs]


def _marked_up(paragraph: str) -> Markup:
    """Turns the two marks that the introduction uses into HTML: **bold** and `code`."""
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(paragraph)))
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", text))


@router.get("/api/docs")
async def reference_page(request: Request, parts: WithParts) -> Response:
    document = request.app.openapi()
    home = (parts.settings.public_url or str(request.base_url)).rstrip("/")
    return show(request, "reference.html", operations=operations(document, home), introduction=introduction(document))
