"""What gathering leaves is whole by the store's own measure."""

from builder.obi.copy import Carriage
from builder.store import FolderStore
from builder.verify import verify

from ..obi.test_obi_verify import MEANS
from . import site as web
from .conftest import World


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
    site.pages["/gone"] = web.status(404)
    world.gather(again=True)
    site.pages["/gone"] = web.text("gone")
    world.gather(again=True)
    assert verify(world.store, MEANS).findings == ()
    copy = FolderStore(world.folder / "copy")
    Carriage(world.store, copy)(lambda many: None)
    assert verify(copy, MEANS).findings == ()
