"""The AWS Lambda function that serves; its handler is functions.site.function.handler.

Import creates it with the execution environment, before the first request. Its configuration is a
sheaf.toml in the zip's root, overridden by the variables SHEAF_*. It writes the access log to
standard output, one line of JSON for each request.
"""

import gc

gc.disable()  # what is imported stays: to search it again and again costs a tenth of the start
from functions.http import lambda_instance  # noqa: E402
from functions.site import assembly  # noqa: E402

handler = lambda_instance.start(assembly.of_lambda)
