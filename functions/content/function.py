"""The function of AWS Lambda that gives content: its handler is functions.content.function.handler.

It is made as functions.oai.function's is, of the same variables and the same sheaf.toml.
"""

import os

from functions.content import assembly
from functions.oai import lambda_instance

handler = lambda_instance.Instance(
    os.environ, lambda_instance.root(os.environ), lambda_instance.write, assembly.of_lambda
)
