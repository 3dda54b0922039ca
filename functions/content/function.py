"""AWS Lambda function for content: its handler is functions.content.function.handler.

It is built like functions.site.function, from the same variables and the same sheaf.toml.
"""

from functions.content import assembly
from functions.http import lambda_instance

handler = lambda_instance.start(assembly.of_lambda)
