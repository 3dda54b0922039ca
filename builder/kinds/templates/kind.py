"""The kind of templates."""

from builder.kinds.kind import Kind
from builder.kinds.templates import templates

TEMPLATES = Kind(
    check=templates.check,
    gather=templates.gather,
    revise=templates.revise,
    recover=templates.recover,
)
