"""Import of web archives as gathered files: captures of URLs that templates name."""
