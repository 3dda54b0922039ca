"""WACZ: chosen captures in one file, for replay."""

from builder.exports.export_row import UNREAD, Export

WACZ = Export(
    "wacz",
    "Write captures as one WACZ file, for replay.",
    ("sheaf export wacz site.wacz --set domain:org:example --title 'A site'",),
    UNREAD,
)
