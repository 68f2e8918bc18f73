"""The Google client at every endpoint that it has a method for."""

import asyncio
import functools
import io
import time
import unittest

from gateway import KEYS, MODEL, ORIGIN, PARAMETERS, TLS_ORIGIN
from google import genai
from google.genai import errors, types

# A client that is collected closes its connections under a call that is being made.
@functools.cache
def client(key="good"):
    return genai.Client(api_key=KEYS.get(key, key), http_options=types.HttpOptions(base_url=ORIGIN))


class Content(unittest.TestCase):
    def test_whole(self):
        answer = client().models.generate_content(model=MODEL, contents="How are you?")
        self.assertIn("How are you?", answer.text)
        self.assertGreater(answer.usage_metadata.total_token_count, 0)

    def test_streamed_with_thoughts(self):
        config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
        chunks = list(client().models.generate_content_stream(model=MODEL, contents="Stream it", config=config))
        parts = [part for chunk in chunks for part in (chunk.candidates[0].content.parts or [])]
        self.assertTrue(any(part.thought for part in parts))
        self.assertIn("Stream it", "".join(part.text or "" for part in parts if not part.thought))

    def test_functions(self):
        function = types.FunctionDeclaration(name="get_weather", parameters_json_schema=PARAMETERS)
        forced = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY"))
        tools = [types.Tool(function_declarations=[function])]
        # Another vendor's protocol behind the same client.
        for model in (MODEL, "claude-opus-5"):
            config = types.GenerateContentConfig(tools=tools, tool_config=forced)
            answer = client().models.generate_content(model=model, contents="Weather?", config=config)
            [call] = answer.function_calls
            self.assertEqual(call.args, {"city": "sample city"})
            question = types.Content(role="user", parts=[types.Part(text="Weather?")])
            result = types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "Sunny"}))
            contents = [question, answer.candidates[0].content, types.Content(role="user", parts=[result])]
            config = types.GenerateContentConfig(tools=tools)
            self.assertIn("Sunny", client().models.generate_content(model=model, contents=contents, config=config).text)

    def test_counting(self):
        self.assertGreater(client("broke").models.count_tokens(model=MODEL, contents="Count me").total_tokens, 0)


class Live(unittest.TestCase):
    def test_session(self):
        async def talk():
            config = types.LiveConnectConfig(response_modalities=["AUDIO"])
            model = "gemini-2.5-flash-native-audio-preview-12-2025"
            # Sessions are opened with TLS alone.
            secure = genai.Client(api_key=KEYS["good"], http_options=types.HttpOptions(base_url=TLS_ORIGIN))
            async with secure.aio.live.connect(model=model, config=config) as session:
                turn = types.Content(role="user", parts=[types.Part(text="Hello, gateway")])
                await session.send_client_content(turns=turn, turn_complete=True)
                return [message async for message in session.receive()]

        messages = asyncio.run(talk())
        audio = b"".join(message.data or b"" for message in messages)
        self.assertGreater(len(audio), 1_000)
        self.assertTrue(any(message.usage_metadata for message in messages))


class OtherEndpoints(unittest.TestCase):
    def test_models(self):
        self.assertIn(f"models/{MODEL}", {model.name for model in client().models.list()})

    def test_embeddings(self):
        config = types.EmbedContentConfig(output_dimensionality=64)
        answer = client().models.embed_content(model="gemini-embedding-001", contents=["a cat", "a dog"], config=config)
        self.assertEqual([len(row.values) for row in answer.embeddings], [64, 64])


    def test_files(self):
        files = client().files
        kept = files.upload(file=io.BytesIO(b"The word of the day is heron."), config={"mime_type": "text/plain"})
        self.assertEqual((kept.size_bytes, kept.mime_type, kept.state.name), (29, "text/plain", "ACTIVE"))
        self.assertIn(kept.name, {file.name for file in files.list()})
        answer = client().models.generate_content(model=MODEL, contents=["What is the word?", kept])
        self.assertGreater(answer.usage_metadata.prompt_token_count, 5)
        files.delete(name=kept.name)
        with self.assertRaises(errors.ClientError) as caught:
            files.get(name=kept.name)
        self.assertEqual(caught.exception.code, 404)

    def test_batch(self):
        batches = client().batches
        requests = [{"contents": [{"role": "user", "parts": [{"text": text}]}]} for text in ("Say one", "Say two")]
        batch = batches.create(model=MODEL, src=requests, config={"display_name": "words"})
        for _ in range(600):
            if batch.state.name not in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING"):
                break
            time.sleep(0.1)
            batch = batches.get(name=batch.name)
        self.assertEqual(batch.state.name, "JOB_STATE_SUCCEEDED")
        answers = [answer.response.text for answer in batch.dest.inlined_responses]
        self.assertTrue("Say one" in answers[0] and "Say two" in answers[1], answers)
        batches.delete(name=batch.name)

    def test_token(self):
        alpha = genai.Client(api_key=KEYS["good"], http_options=types.HttpOptions(base_url=ORIGIN, api_version="v1alpha"))
        self.assertTrue(alpha.auth_tokens.create(config={"uses": 1}).name)


class Failures(unittest.TestCase):
    def test_codes(self):
        for code, key, model, contents in (
            (400, "good", MODEL, "[[sandbox: status=400]]"),
            (401, "unknown", MODEL, "Hello"),
            (402, "broke", MODEL, "Hello"),
            (403, "narrow", MODEL, "Hello"),
            (404, "good", "no-such-model", "Hello"),
        ):
            with self.subTest(code), self.assertRaises(errors.ClientError) as caught:
                client(key).models.generate_content(model=model, contents=contents)
            self.assertEqual(caught.exception.code, code)
            self.assertTrue(caught.exception.message)
