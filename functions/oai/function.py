"""The function of AWS Lambda that serves: its handler is functions.oai.function.handler.

It is made with the execution environment, before the first request, of the variables SHEAF_* over
a sheaf.toml in the zip's root. A request is told of on standard output, by a line of JSON.
"""

import os

from functions.oai import assembly, lambda_instance

handler = lambda_instance.Instance(
    os.environ, lambda_instance.root(os.environ), lambda_instance.write, assembly.application
)
