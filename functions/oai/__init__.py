"""OAI-PMH 2.0 data provider: `application` takes requests, `provider` has the six verbs."""
