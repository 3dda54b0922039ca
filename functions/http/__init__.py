"""HTTP of all functions: events of AWS gateways, messages, caching, deadlines."""
