"""The tables of pages as CSV (RFC 4180) and JSON, each beside its page: `/months.csv`."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from functools import partial

from functions.http import http_message
from functions.http.http_message import Reply
from functions.site.page import PageRequest, PageTable


def write_csv(table: PageTable) -> str:
    """Return a table as CSV with the names of its columns; what is missing is empty."""
    out = io.StringIO()
    csv.writer(out).writerows([table.columns, *table.rows])
    return out.getvalue()


def write_json(table: PageTable) -> str:
    """Return a table as JSON: its statement, if it has one, and an object for each row."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    statement = {"sql": table.sql} if table.sql else {}
    return json.dumps({"table": table.name, **statement, "rows": rows}, ensure_ascii=False)


_FORMS = {"csv": ("text/csv", write_csv), "json": ("application/json", write_json)}


def list_files(
    tables: Mapping[str, Callable[[PageRequest], PageTable]],
) -> Mapping[str, Callable[[PageRequest], Reply]]:
    """Return what writes each file of tables, by its path. It raises what they raise."""
    return {
        f"{name}.{form}": partial(_write, tables[name], form) for name in tables for form in _FORMS
    }


def _write(find: Callable[[PageRequest], PageTable], form: str, request: PageRequest) -> Reply:
    table, (media_type, write) = find(request), _FORMS[form]
    body = write(table).encode("utf-8", "replace")
    headers = {
        **http_message.PAGES,
        "Content-Disposition": f'attachment; filename="{table.name}.{form}"',
    }
    if table.more is not None:
        following = request.address.page(f"/{table.name}.{form}", **table.more)
        headers["Link"] = f'<{request.address.locate(following)}>; rel="next"'
    log_fields = {"snapshot": request.manifest.snapshot, "page": f"{table.name}.{form}"}
    return Reply(200, media_type, body, headers, http_message.document_digest(body), log_fields)
