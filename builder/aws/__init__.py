"""Lambda functions of the builder: the publisher and the worker for filesets."""
