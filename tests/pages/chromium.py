"""Chromium and what drives it: without them, the tests that import this are skipped."""

import shutil

import pytest

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: `make prove-pages` installs it"
)
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed: `make prove-pages` does", allow_module_level=True)
