"""The AWS Lambda function that serves; its handler is functions.site.function.handler.

Import creates it with the execution environment, before the first request. Its configuration is a
sheaf.toml in the zip's root, overridden by the variables SHEAF_*. It writes the access log to
standard output, one line of JSON for each request.
"""

from functions.http import lambda_instance
from functions.site import assembly

handler = lambda_instance.start(assembly.of_lambda)
