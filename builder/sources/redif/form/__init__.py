"""ReDIF 1.0, RePEc's template format: a stream in, templates and diagnostics out.

Nothing here knows paths, clocks or stores. `template.read_templates` is the way in.
"""
