"""Answers requests, on AWS Lambda and in `sheaf serve`; reads stores, never writes them.

`snapshot` is the contract with `builder`, which writes stores. `oai` answers OAI-PMH, `content`
gives the archived bytes.
"""
