"""Every client, in turns and at once, before vendors that are silent for 17 seconds in the middle of their answers."""

import asyncio
import json
import os
import sys

import anthropic
import openai
from google import genai
from google.genai import types

ORIGIN = os.environ["SILENT_ORIGIN"]
MODELS = json.loads(os.environ["SILENT_MODELS"])
TEXT = os.environ["SILENT_TEXT"]

MESSAGES = [{"role": "user", "content": "Hello?"}]
OPENAI = {"base_url": f"{ORIGIN}/v1", "api_key": "any", "max_retries": 0}
ANTHROPIC = {"base_url": ORIGIN, "api_key": "any", "max_retries": 0}


def google():
    return genai.Client(api_key="any", http_options=types.HttpOptions(base_url=ORIGIN))


def chat(model):
    stream = openai.OpenAI(**OPENAI).chat.completions.create(model=model, messages=MESSAGES, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def responses(model):
    stream = openai.OpenAI(**OPENAI).responses.create(model=model, input="Hello?", stream=True)
    return "".join(event.delta for event in stream if event.type == "response.output_text.delta")


def messages(model):
    with anthropic.Anthropic(**ANTHROPIC).messages.stream(model=model, messages=MESSAGES, max_tokens=100) as stream:
        return "".join(stream.text_stream)


def gemini(model):
    client = google()
    return "".join(chunk.text or "" for chunk in client.models.generate_content_stream(model=model, contents="Hello?"))


async def chat_at_once(model):
    stream = await openai.AsyncOpenAI(**OPENAI).chat.completions.create(model=model, messages=MESSAGES, stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def responses_at_once(model):
    stream = await openai.AsyncOpenAI(**OPENAI).responses.create(model=model, input="Hello?", stream=True)
    return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])


async def messages_at_once(model):
    client = anthropic.AsyncAnthropic(**ANTHROPIC)
    async with client.messages.stream(model=model, messages=MESSAGES, max_tokens=100) as stream:
        return "".join([text async for text in stream.text_stream])


async def gemini_at_once(model):
    client = google()
    stream = await client.aio.models.generate_content_stream(model=model, contents="Hello?")
    return "".join([chunk.text or "" async for chunk in stream])


async def read(ask, model):
    try:
        text = await (ask(model) if asyncio.iscoroutinefunction(ask) else asyncio.to_thread(ask, model))
    except Exception as error:  # Whatever a client fails with is what is looked for.
        return f"{type(error).__name__}: {error}"
    return None if text == TEXT else f"read {text!r}"


async def main():
    asks = (chat, responses, messages, gemini, chat_at_once, responses_at_once, messages_at_once, gemini_at_once)
    pairs = [(ask, model) for ask in asks for model in MODELS]
    ends = await asyncio.gather(*(read(ask, model) for ask, model in pairs))
    failed = [f"{ask.__name__} {model}: {end}" for (ask, model), end in zip(pairs, ends) if end is not None]
    print("\n".join(failed) or f"{len(pairs)} streams with a silence were read to their end", file=sys.stderr)
    sys.exit(1 if failed else 0)


asyncio.run(main())
