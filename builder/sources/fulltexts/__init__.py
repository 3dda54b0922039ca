"""Gathering: fetches the full texts that RePEc's templates refer to, and records the results."""
