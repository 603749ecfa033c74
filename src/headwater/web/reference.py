"""The page with the reference of the API."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from headwater.http.reference import introduction, operations
from headwater.web.view import show

router = APIRouter()


@router.get("/api/docs")
async def reference_page(request: Request) -> Response:
    document = request.app.openapi()
    return show(request, "reference.html", operations=operations(document), introduction=introduction(document))
