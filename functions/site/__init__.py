"""Pages for people, and what other machines read beside OAI-PMH: feed, sitemap, description."""
