"""The intake: what ingests wrote and a publish reads."""
