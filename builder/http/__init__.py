"""HTTP client of the builder: polite, bounded, and confined to public addresses.

`settings` has the pace and the limits (`http.*`), `politeness` the waits between requests to a
host. functions.http is about requests that Sheaf answers.
"""
