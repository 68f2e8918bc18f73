"""The OpenAI client at every endpoint that it has a method for."""

import asyncio
import base64
import io
import json
import time
import unittest

import openai
from gateway import KEYS, MODEL, ORIGIN, PARAMETERS

MESSAGES = [{"role": "user", "content": "How are you?"}]


def client(key="good"):
    return openai.OpenAI(base_url=f"{ORIGIN}/v1", api_key=KEYS.get(key, key), max_retries=0)


class Chat(unittest.TestCase):
    def test_whole(self):
        answer = client().chat.completions.create(model=MODEL, messages=MESSAGES)
        self.assertIn("How are you?", answer.choices[0].message.content)
        self.assertGreater(answer.usage.total_tokens, 0)

    def test_streamed(self):
        options = {"include_usage": True}
        chunks = list(client().chat.completions.create(model=MODEL, messages=MESSAGES, stream=True, stream_options=options))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertIn("How are you?", text)
        self.assertGreater(chunks[-1].usage.completion_tokens, 0)

    def test_tools(self):
        tools = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
        # Another vendor's protocol behind the same client.
        for model in (MODEL, "claude-opus-5"):
            with client().chat.completions.stream(model=model, messages=MESSAGES, tools=tools, tool_choice="required") as stream:
                message = stream.get_final_completion().choices[0].message
            [call] = message.tool_calls
            self.assertEqual(json.loads(call.function.arguments), {"city": "sample city"})
            heard = [*MESSAGES, message, {"role": "tool", "tool_call_id": call.id, "content": "Sunny"}]
            answer = client().chat.completions.create(model=model, messages=heard, tools=tools)
            self.assertIn("Sunny", answer.choices[0].message.content)

    def test_side_by_side(self):
        async def ask():
            calling = openai.AsyncOpenAI(base_url=f"{ORIGIN}/v1", api_key=KEYS["good"], max_retries=0)
            return await asyncio.gather(*(calling.chat.completions.create(model=MODEL, messages=MESSAGES) for _ in range(5)))

        self.assertEqual(len({answer.id for answer in asyncio.run(ask())}), 5)


class Responses(unittest.TestCase):
    def test_whole_and_continued(self):
        responses = client().responses
        first = responses.create(model=MODEL, input="My name is Ada.")
        following = responses.create(model=MODEL, input="And yours?", previous_response_id=first.id)
        self.assertEqual(responses.retrieve(following.id).output_text, following.output_text)
        self.assertEqual(len(responses.input_items.list(following.id).data), 3)

    def test_streamed(self):
        with client().responses.stream(model=MODEL, input="Stream it") as stream:
            final = stream.get_final_response()
        self.assertIn("Stream it", final.output_text)

    def test_conversation(self):
        # Kept here, whichever protocol the vendor of the model speaks.
        for model in (MODEL, "claude-opus-5"):
            made = client().conversations.create(metadata={"topic": "names"})
            responses = client().responses
            responses.create(model=model, input="My name is Ada.", conversation=made.id)
            responses.create(model=model, input="And yours?", conversation=made.id)
            items = list(client().conversations.items.list(made.id, order="asc"))
            self.assertEqual([item.role for item in items], ["user", "assistant", "user", "assistant"])
            added = client().conversations.items.create(made.id, items=[{"type": "message", "role": "user", "content": "More"}])
            client().conversations.items.delete(added.data[0].id, conversation_id=made.id)
            self.assertEqual(len(list(client().conversations.items.list(made.id))), 4)
            self.assertEqual(client().conversations.retrieve(made.id).metadata, {"topic": "names"})
            self.assertTrue(client().conversations.delete(made.id).deleted)
            with self.assertRaises(openai.NotFoundError):
                client().conversations.retrieve(made.id)

    def test_over_a_websocket(self):
        with client().responses.connect() as connection:
            previous = None
            for text in ("One", "Two"):
                connection.response.create(model=MODEL, input=text, store=False, previous_response_id=previous)
                for event in connection:
                    self.assertNotEqual(event.type, "error", event)
                    if event.type == "response.completed":
                        break
                self.assertIn(text, json.dumps([item.to_dict() for item in event.response.output]))
                previous = event.response.id


class Realtime(unittest.TestCase):
    def test_session(self):
        with client().realtime.connect(model="gpt-realtime-1.5") as connection:
            words = {"type": "input_text", "text": "Hello, gateway"}
            connection.conversation.item.create(item={"type": "message", "role": "user", "content": [words]})
            connection.response.create()
            audio = b""
            for event in connection:
                self.assertNotEqual(event.type, "error", event)
                if event.type == "response.output_audio.delta":
                    audio += base64.b64decode(event.delta)
                if event.type == "response.done":
                    break
        self.assertGreater(len(audio), 10_000)
        self.assertGreater(event.response.usage.output_tokens, 0)

    def test_client_secret(self):
        session = {"type": "realtime", "model": "gpt-realtime-1.5"}
        secret = client().realtime.client_secrets.create(session=session)
        with client(secret.value).realtime.connect(model="gpt-realtime-1.5") as connection:
            self.assertEqual(connection.recv().type, "session.created")


class OtherEndpoints(unittest.TestCase):
    def test_models(self):
        ids = {model.id for model in client().models.list()}
        self.assertIn(MODEL, ids)
        self.assertEqual(client().models.retrieve(MODEL).id, MODEL)

    def test_embeddings(self):
        answer = client().embeddings.create(model="text-embedding-3-small", input=["a cat", "a dog"], dimensions=64)
        self.assertEqual([len(row.embedding) for row in answer.data], [64, 64])

    def test_moderation(self):
        self.assertTrue(client("broke").moderations.create(input="A text about violence").results[0].flagged)

    def test_speech_and_transcription(self):
        audio = client().audio.speech.create(model="tts-1", voice="alloy", input="x" * 30, response_format="wav").read()
        self.assertEqual(audio[:4], b"RIFF")
        text = client().audio.transcriptions.create(model="whisper-1", file=("talk.wav", audio)).text
        self.assertIn("2 seconds of talk.wav", text)
        words = client().audio.transcriptions.create(model="gpt-4o-transcribe", file=("talk.wav", audio), stream=True)
        deltas = [event.delta for event in words if event.type == "transcript.text.delta"]
        self.assertIn("talk.wav", "".join(deltas))

    def test_files(self):
        files = client().files
        made = files.create(file=("übung.txt", io.BytesIO("ü".encode())), purpose="user_data")
        self.assertEqual((made.filename, made.bytes), ("übung.txt", 2))
        self.assertEqual(files.content(made.id).read(), "ü".encode())
        self.assertIn(made.id, [file.id for file in files.list()])
        self.assertTrue(files.delete(made.id).deleted)
        with self.assertRaises(openai.NotFoundError):
            files.retrieve(made.id)

    def test_upload_in_parts(self):
        uploads = client().uploads
        halves = [b"a first half, ", b"and a second"]
        made = uploads.create(filename="whole.txt", bytes=sum(map(len, halves)), mime_type="text/plain", purpose="user_data")
        parts = [uploads.parts.create(made.id, data=half) for half in halves]
        done = uploads.complete(made.id, part_ids=[part.id for part in parts])
        self.assertEqual((done.status, done.file.filename), ("completed", "whole.txt"))
        self.assertEqual(client().files.content(done.file.id).read(), b"".join(halves))
        left = uploads.create(filename="left.txt", bytes=1, mime_type="text/plain", purpose="user_data")
        self.assertEqual(uploads.cancel(left.id).status, "cancelled")

    def test_upload_at_once(self):
        text = b"x" * 3000
        done = client().uploads.upload_file_chunked(
            file=text, filename="chunks.txt", bytes=len(text), mime_type="text/plain", purpose="user_data", part_size=1024
        )
        self.assertEqual(client().files.content(done.file.id).read(), text)

    def test_batch(self):
        lines = [
            {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": {"model": MODEL, "messages": MESSAGES}}
            for name in ("one", "two")
        ]
        text = "\n".join(json.dumps(line) for line in lines).encode()
        source = client().files.create(file=("in.jsonl", io.BytesIO(text)), purpose="batch")
        batch = client().batches.create(input_file_id=source.id, endpoint="/v1/chat/completions", completion_window="24h")
        deadline = time.monotonic() + 60
        while batch.status not in ("completed", "failed", "expired", "cancelled"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
            batch = client().batches.retrieve(batch.id)
        self.assertEqual((batch.status, batch.request_counts.completed), ("completed", 2))
        answers = [json.loads(line) for line in client().files.content(batch.output_file_id).text.splitlines()]
        self.assertEqual({answer["custom_id"] for answer in answers}, {"one", "two"})


class Failures(unittest.TestCase):
    def test_classes(self):
        def ask(key="good", model=MODEL, content="Hello"):
            client(key).chat.completions.create(model=model, messages=[{"role": "user", "content": content}])

        for expected, arguments in (
            (openai.BadRequestError, {"content": "[[sandbox: status=400]]"}),
            (openai.AuthenticationError, {"key": "sk-unknown"}),
            (openai.PermissionDeniedError, {"key": "narrow"}),
            (openai.NotFoundError, {"model": "no-such-model"}),
        ):
            with self.subTest(expected), self.assertRaises(expected) as caught:
                ask(**arguments)
            self.assertTrue(caught.exception.body["message"])
        with self.assertRaises(openai.APIStatusError) as caught:
            ask(key="broke")
        self.assertEqual((caught.exception.status_code, caught.exception.code), (402, "insufficient_balance"))

    def test_rate_limit(self):
        with self.assertRaises(openai.RateLimitError) as caught:
            for _ in range(2):
                client("tight").chat.completions.create(model=MODEL, messages=MESSAGES)
        self.assertGreater(int(caught.exception.response.headers["retry-after"]), 0)
