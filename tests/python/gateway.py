"""The gateway that the tests call, and the keys of its customers."""

import json
import os

ORIGIN = os.environ["GATEWAY_ORIGIN"]
TLS_ORIGIN = os.environ["GATEWAY_TLS_ORIGIN"]
KEYS = json.loads(os.environ["GATEWAY_KEYS"])
MODEL = "gpt-5.4-mini"

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
