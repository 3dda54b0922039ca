"""The kind of templates."""

from builder.kinds.kind import Kind
from builder.kinds.templates import templates
from builder.kinds.templates.verify import ObiAudit

TEMPLATES = Kind(
    (templates.KIND,),
    identifiers="handle",
    check=templates.check,
    gather=templates.gather,
    revise=templates.revise,
    recover=templates.recover,
    verify=ObiAudit.begin,
    counted=("templates", "template of RePEc", "templates of RePEc"),
)
