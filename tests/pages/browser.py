"""Visits pages in Chromium, and judges each as its readers would."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response

LARGEST = 150_000
"""Bytes of a page with all its requests."""
WIDTHS, SCHEMES = (320, 360, 1280), ("light", "dark")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"]
"""What axe-core tries: all rules of WCAG at the levels A and AA, and best practices."""
_HEIGHT = 900
_LAID_OUT = ["scrollable-region-focusable", "target-size"]
"""The rules that the window's width matters to."""
_AXE = """async ([type, values]) => {
  const rules = type === "tag" ? {"target-size": {enabled: true}} : {};
  const found = await axe.run({runOnly: {type, values}, rules, resultTypes: ["violations"]});
  return found.violations.flatMap(one => one.nodes.map(
    node => `${one.id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}"""
_WIDE = """() => [...document.querySelectorAll("body *")].filter(one =>
  one.getBoundingClientRect().right > document.documentElement.clientWidth + 1
  && !one.closest("table, pre, .hidden, .skip")).slice(0, 5).map(
  one => `${one.tagName}.${one.className}: ${one.textContent.trim().slice(0, 60)}`)"""
_CONTROLS = """() => {
  const all = document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']");
  window.reached = new Set();
  window.dim = [];
  document.addEventListener("focusin", event => {
    const style = getComputedStyle(event.target), box = event.target.getBoundingClientRect();
    window.reached.add(event.target);
    const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    if (!seen || box.width < 1 || box.height < 1)
      window.dim.push(event.target.outerHTML.slice(0, 200));
  });
  window.wanted = [...all].filter(one => one.checkVisibility({contentVisibilityAuto: true}));
  return window.wanted.length;
}"""
_MISSED = """() => window.wanted.filter(one => !window.reached.has(one)).map(
  one => one.outerHTML.slice(0, 200))"""
_SKIPPED = """() => {
  const box = document.activeElement.getBoundingClientRect();
  return document.activeElement.className === "skip" && box.left >= 0 && box.width > 20;
}"""


@dataclass
class Visited:
    """A page in a tab, what it loaded, and what the browser said of it."""

    page: Page
    remarks: list[str] = field(default_factory=list)
    loaded: list[Response] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """Bytes of all responses, uncompressed."""
        return sum(len(response.body()) for response in self.loaded)

    def judge(self, axe: str, everywhere: bool = True) -> list[str]:
        """Return what axe-core finds, and what is wider than the window, at each width and scheme.

        Only at the first of both all rules are tried, elsewhere those that it matters to. Not
        `everywhere`: at the first only.
        """
        self.page.evaluate(axe)
        if not everywhere:
            self.look(WIDTHS[0], SCHEMES[0])
            return self.page.evaluate(_AXE, ["tag", TAGS]) + self.overflow()
        found: list[str] = []
        for scheme in SCHEMES:
            for width in WIDTHS:
                self.look(width, scheme)
                if (width, scheme) == (WIDTHS[0], SCHEMES[0]):
                    found += self.page.evaluate(_AXE, ["tag", TAGS])
                elif width == WIDTHS[0]:
                    found += self.page.evaluate(_AXE, ["rule", ["color-contrast"]])
                elif scheme == SCHEMES[0]:
                    found += self.page.evaluate(_AXE, ["rule", _LAID_OUT])
                found += [f"{width}: {one}" for one in self.overflow()]
        return found

    def look(self, width: int, scheme: str) -> None:
        """Make the window that wide, and light or dark."""
        self.page.set_viewport_size({"width": width, "height": _HEIGHT})
        self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]

    def shoot(self, folder: Path, name: str) -> None:
        """Save pictures of the whole page, at each width and scheme."""
        folder.mkdir(parents=True, exist_ok=True)
        for scheme in SCHEMES:
            for width in WIDTHS:
                self.look(width, scheme)
                path = folder / f"{name}-{width}-{scheme}.png"
                self.page.screenshot(path=path, full_page=True)

    def overflow(self) -> list[str]:
        """Return what makes the document wider than the window."""
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return (
            [f"wide: {one}" for one in self.page.evaluate(_WIDE) or ["?"]]
            if (self.page.evaluate(wide))
            else []
        )

    def tab(self) -> list[str]:
        """Press Tab to the end of the page; return what was not reached or shows no outline."""
        count = self.page.evaluate(_CONTROLS)
        self.page.keyboard.press("Tab")
        found = [] if self.page.evaluate(_SKIPPED) else ["the first Tab shows no skip link"]
        for _ in range(count - 1):
            self.page.keyboard.press("Tab")
        missed = [f"not reached: {one}" for one in self.page.evaluate(_MISSED)]
        return found + missed + [f"no outline: {one}" for one in self.page.evaluate("window.dim")]

    def skip(self) -> list[str]:
        """Follow the skip link; the next Tab leads into the content, or behind it."""
        self.page.keyboard.press("Tab")
        self.page.keyboard.press("Enter")
        self.page.keyboard.press("Tab")
        inside = "!document.activeElement.closest('header')"
        return [] if self.page.evaluate(inside) else ["the skip link leads nowhere"]


@dataclass
class Reader:
    """A reader with a browser; `root` is the only host that it may be led to."""

    browser: Browser
    root: str

    @contextmanager
    def looking(
        self, width: int = 1280, scripts: bool = True
    ) -> Iterator[Callable[[str], Visited]]:
        """Give what opens a path in a window of that width, the same for all."""
        context = self.browser.new_context(
            viewport={"width": width, "height": _HEIGHT}, java_script_enabled=scripts
        )
        page = context.new_page()
        visits = [Visited(page)]
        self._watch(page, visits)

        def open_page(path: str) -> Visited:
            visits.append(Visited(page))
            page.goto(self.root + path, wait_until="load")
            return visits[-1]

        try:
            yield open_page
        finally:
            context.close()

    def _watch(self, page: Page, visits: list[Visited]) -> None:
        """Note what the browser says and loads, each time with the last of the visits."""

        def hear(message: ConsoleMessage) -> None:
            # The browser itself tells of a status of 400 or more, which is what was asked for.
            if message.type in ("error", "warning") and "status of 4" not in message.text:
                visits[-1].remarks.append(f"console: {message.text}")

        def take(response: Response) -> None:
            if not response.url.startswith(f"{self.root}/"):
                visits[-1].remarks.append(f"another host: {response.url}")
            visits[-1].loaded.append(response)

        page.on("console", hear)
        page.on("pageerror", lambda error: visits[-1].remarks.append(f"script: {error}"))

        def fail(request: Request) -> None:
            # An image that is loaded late is given up where the next page is opened.
            if request.failure != "net::ERR_ABORTED" or request.resource_type != "image":
                visits[-1].remarks.append(f"failed: {request.url}")

        page.on("requestfailed", fail)
        page.on("response", take)
