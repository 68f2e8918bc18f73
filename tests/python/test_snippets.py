"""The snippets of the console's playground and set-up, run as they are shown."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

FOLDER = Path(os.environ["SNIPPETS"])
WANTED = json.loads(os.environ["SNIPPETS_WANTED"])
TEMPLATES = {name: {"says": "Hello"} for name in ("openai", "anthropic", "google")}


class Snippets(unittest.TestCase):
    def test_each(self):
        for name, wanted in {**WANTED, **TEMPLATES}.items():
            with self.subTest(name):
                place = FOLDER / name
                # All that a program of one's own would have.
                done = subprocess.run(
                    [sys.executable, "snippet.py"], cwd=place, capture_output=True, text=True, timeout=60, check=False
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                if wanted.get("says"):
                    self.assertRegex(done.stdout, re.compile(wanted["says"], re.MULTILINE))
                if wanted.get("makes"):
                    self.assertGreater((place / wanted["makes"]).stat().st_size, 100)
