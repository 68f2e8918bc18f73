"""The Anthropic client at every endpoint that it has a method for."""

import io
import json
import time
import unittest

import anthropic
from gateway import KEYS, MODEL, ORIGIN, PARAMETERS

CLAUDE = "claude-opus-5"
ASKED = {"model": CLAUDE, "max_tokens": 2000, "messages": [{"role": "user", "content": "How are you?"}]}


def client(key="good"):
    return anthropic.Anthropic(base_url=ORIGIN, api_key=KEYS.get(key, key), max_retries=0)


class Messages(unittest.TestCase):
    def test_whole(self):
        answer = client().messages.create(**ASKED)
        self.assertIn("How are you?", answer.content[0].text)
        self.assertGreater(answer.usage.output_tokens, 0)

    def test_streamed_with_thoughts(self):
        with client().messages.stream(**ASKED, thinking={"type": "enabled", "budget_tokens": 1024}) as stream:
            final = stream.get_final_message()
        self.assertEqual([block.type for block in final.content], ["thinking", "text"])

    def test_tools(self):
        tools = [{"name": "get_weather", "input_schema": PARAMETERS}]
        # Another vendor's protocol behind the same client.
        for model in (CLAUDE, MODEL):
            asked = {**ASKED, "model": model, "tools": tools}
            with client().messages.stream(**asked, tool_choice={"type": "any"}) as stream:
                final = stream.get_final_message()
            call = next(block for block in final.content if block.type == "tool_use")
            self.assertEqual(call.input, {"city": "sample city"})
            result = {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny"}
            heard = [*ASKED["messages"], {"role": "assistant", "content": final.content}, {"role": "user", "content": [result]}]
            answer = client().messages.create(**{**asked, "messages": heard})
            self.assertIn("Sunny", answer.content[-1].text)

    def test_counting(self):
        asked = {name: value for name, value in ASKED.items() if name != "max_tokens"}
        self.assertGreater(client("broke").messages.count_tokens(**asked).input_tokens, 0)


class OtherEndpoints(unittest.TestCase):
    def test_models(self):
        self.assertIn(CLAUDE, {model.id for model in client().models.list(limit=1000)})
        self.assertEqual(client().models.retrieve(CLAUDE).id, CLAUDE)

    def test_files(self):
        files = client().beta.files
        made = files.upload(file=("notes.txt", io.BytesIO(b"notes"), "text/plain"))
        self.assertEqual((made.filename, made.size_bytes), ("notes.txt", 5))
        self.assertEqual(files.download(made.id).read(), b"notes")
        self.assertIn(made.id, [file.id for file in files.list()])
        files.delete(made.id)
        with self.assertRaises(anthropic.NotFoundError):
            files.retrieve_metadata(made.id)

    def test_batch(self):
        batches = client().messages.batches
        batch = batches.create(requests=[{"custom_id": name, "params": ASKED} for name in ("one", "two")])
        deadline = time.monotonic() + 60
        while batch.processing_status != "ended":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
            batch = batches.retrieve(batch.id)
        results = {entry.custom_id: entry.result for entry in batches.results(batch.id)}
        self.assertEqual({name: result.type for name, result in results.items()}, {"one": "succeeded", "two": "succeeded"})
        self.assertIn("How are you?", json.dumps(results["one"].message.to_dict()))


class Failures(unittest.TestCase):
    def test_classes(self):
        def ask(key="good", **changed):
            client(key).messages.create(**{**ASKED, **changed})

        sandbox = [{"role": "user", "content": "[[sandbox: status=400]]"}]
        for expected, arguments in (
            (anthropic.BadRequestError, {"messages": sandbox}),
            (anthropic.AuthenticationError, {"key": "sk-unknown"}),
            (anthropic.PermissionDeniedError, {"key": "narrow", "model": MODEL}),
            (anthropic.NotFoundError, {"model": "no-such-model"}),
        ):
            with self.subTest(expected), self.assertRaises(expected) as caught:
                ask(**arguments)
            self.assertTrue(caught.exception.body["error"]["message"])
        with self.assertRaises(anthropic.APIStatusError) as caught:
            ask(key="broke")
        self.assertEqual((caught.exception.status_code, caught.exception.body["error"]["type"]), (402, "billing_error"))
