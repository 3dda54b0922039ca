"""What gathering leaves is whole by the store's own measure."""

from collections import Counter

import pytest

from builder.obi.content import Incidence
from builder.store.folder import FolderStore
from builder.verify.verify import verify
from tests.builder.http import site as web
from tests.builder.obi.holding import copy_runs
from tests.builder.obi.test_verify import MEANS
from tests.builder.sources.fulltexts.conftest import World


@pytest.mark.sampled(3)
def test_a_gathered_store_is_whole(anywhere: World) -> None:
    world, site = anywhere, anywhere.site
    far = "y" * 3000
    paths = ("a", "b", "b/", "c", "d", "gone", "bad", "x" * 400)
    site.pages |= {f"/{path}": web.text(path) for path in paths}
    site.pages |= {"/from": web.redirect("/a"), "/b": web.redirect("/b/"), "/bad": web.status(500)}
    site.pages |= {"/far": web.redirect(f"/{far}"), f"/{far}": web.redirect("/a")}
    world.refer([site.url(f"/{path}") for path in (*paths, "from", "far")])
    world.gather()
    for path in ("a", "c"):
        site.pages[f"/{path}"] = web.text("changed")
    site.pages["/gone"], gone = web.status(404), site.url("/gone")
    world.gather(again=True)
    site.pages["/gone"] = web.text("gone")
    (run,) = world.gather(again=True).runs
    events = Counter(
        (row.what, row.again)
        for number in (-3, -2, -1)
        for row in world.rows(number)
        if isinstance(row, Incidence)
    )
    assert events == {
        ("appearance", False): 6,
        ("change", False): 2,
        ("deletion", False): 1,
        ("appearance", True): 1,
    }
    (back,) = world.ask(f"SELECT versions, seen, lost, key FROM obi WHERE id = '{gone}'")
    assert back[:3] == (1, run, None)
    assert world.store.read(back[3]) == b"gone"
    assert verify(world.store, MEANS).findings == ()
    copy = FolderStore(world.folder / "copy")
    copy_runs(world.store, copy)
    assert verify(copy, MEANS).findings == ()
