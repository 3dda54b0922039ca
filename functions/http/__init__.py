"""HTTP for all functions: messages, gateways, caching, deadlines."""
