"""What pages show of a template's attributes."""

from functions.kinds.templates import list_attributes


def test_addresses_of_persons_are_not_on_pages() -> None:
    person = {"name": ["A. Name"], "email": ["a@example.org"], "workplace": [{"email": ["b@c.cz"]}]}
    fields = {"title": ["T"], "author": [person], "maintainer-email": ["m@example.org"]}
    assert [(name, value) for _, name, _, value in list_attributes({"fields": fields})] == [
        ("title", ["T"]),
        ("author", [{"name": ["A. Name"], "workplace": [{}]}]),
    ]
