"""AWS Lambda function for content: its handler is functions.content.function.handler.

It is built like functions.site.function, from the same variables and the same sheaf.toml.
"""

import os

from functions.content import assembly
from functions.http import lambda_instance

handler = lambda_instance.Instance(
    os.environ, lambda_instance.root(os.environ), lambda_instance.write, assembly.of_lambda
)
