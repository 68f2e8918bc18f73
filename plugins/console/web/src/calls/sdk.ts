/** Which method of which official SDK makes a call, and how its answer is used. Pure. */
import type { ApiCall, CallName } from './call.ts';
import { OpenedFile } from './literals.ts';

interface Texts {
  readonly python: string;
  readonly javascript: string;
}

export interface Sdk {
  readonly client: 'openai' | 'anthropic' | 'google';
  /** As in JavaScript; Python's has underscores. */
  readonly method: string;
  readonly members: Readonly<Record<string, unknown>>;
  /** Members that the SDK in Python does not know by name. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Path of an endpoint that the SDK has no method for. */
  readonly path?: string;
  readonly result: string;
  /** Whether the result is replaced later. */
  readonly changes?: boolean;
  readonly after: Texts;
}

type Describe = (call: ApiCall) => Sdk;

const streamed = (after: Texts, method: string): Describe => {
  return ({ body }) => ({ client: 'openai', method, members: body, result: 'stream', after });
};

const chat = streamed(
  {
    python: 'for chunk in stream:\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "", end="")',
    javascript: 'for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? "");',
  },
  'chat.completions.create',
);

const responses = streamed(
  {
    python:
      'for event in stream:\n    if event.type == "response.output_text.delta":\n        print(event.delta, end="")',
    javascript:
      'for await (const event of stream)\n  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);',
  },
  'responses.create',
);

/** Newer versions of the SDK in Python do not name the temperature, nor does its stable part name servers of tools. */
const messages: Describe = ({ body: { temperature, mcp_servers, ...members } }) => ({
  client: 'anthropic',
  method: 'messages.create',
  members,
  ...(temperature === undefined && mcp_servers === undefined
    ? {}
    : {
        extra: {
          ...(temperature === undefined ? {} : { temperature }),
          ...(mcp_servers === undefined ? {} : { mcp_servers }),
        },
      }),
  result: 'stream',
  after: {
    python:
      'for event in stream:\n    if event.type == "content_block_delta" and event.delta.type == "text_delta":\n        print(event.delta.text, end="")',
    javascript:
      'for await (const event of stream)\n  if (event.type === "content_block_delta" && event.delta.type === "text_delta")\n    process.stdout.write(event.delta.text);',
  },
});

/** Its SDK has the model beside the body, and all that is neither model nor contents under `config`. */
const gemini: Describe = ({ path, body }) => {
  const { contents, generationConfig = {}, ...others } = body;
  const config = { ...others, ...(generationConfig as object) };
  const model = decodeURIComponent(/models\/([^:]+):/.exec(path)?.[1] ?? '');
  return {
    client: 'google',
    method: 'models.generateContentStream',
    members: { model, contents, ...(Object.keys(config).length === 0 ? {} : { config }) },
    result: 'stream',
    after: {
      python: 'for chunk in stream:\n    print(chunk.text or "", end="")',
      javascript: 'for await (const chunk of stream) process.stdout.write(chunk.text ?? "");',
    },
  };
};

/** Answered with the images: a format of the answer asks the gateway to wait for them. */
const image: Describe = ({ body }) => {
  const { image_urls: urls, resolution, ...members } = body;
  const images = (Array.isArray(urls) ? (urls as readonly string[]) : []).map((url) => new OpenedFile(url));
  return {
    client: 'openai',
    method: images.length === 0 ? 'images.generate' : 'images.edit',
    members: { ...members, ...(images.length === 0 ? {} : { image: images }), response_format: 'b64_json' },
    ...(resolution === undefined ? {} : { extra: { resolution } }),
    result: 'answer',
    after: {
      python:
        'for number, image in enumerate(answer.data, 1):\n    Path(f"made-{number}.png").write_bytes(b64decode(image.b64_json))',
      javascript:
        'for (const [index, image] of answer.data.entries())\n  writeFileSync(`made-${index + 1}.png`, image.b64_json, "base64");',
    },
  };
};

const video: Describe = ({ body }) => {
  const { input_reference: frame, ...members } = body;
  return {
    client: 'openai',
    method: 'videos.create',
    members: { ...members, ...(typeof frame === 'string' ? { input_reference: new OpenedFile(frame) } : {}) },
    result: 'video',
    changes: true,
    after: {
      python: [
        'while video.status in ("queued", "in_progress"):',
        '    sleep(2)',
        '    video = client.videos.retrieve(video.id)',
        'if video.status != "completed":',
        '    raise SystemExit(video.error.message)',
        'client.videos.download_content(video.id).write_to_file("made.mp4")',
      ].join('\n'),
      javascript: [
        'while (video.status === "queued" || video.status === "in_progress") {',
        '  await sleep(2_000);',
        '  video = await client.videos.retrieve(video.id);',
        '}',
        'if (video.status !== "completed") throw new Error(video.error.message);',
        'const file = await client.videos.downloadContent(video.id);',
        'writeFileSync("made.mp4", Buffer.from(await file.arrayBuffer()));',
      ].join('\n'),
    },
  };
};

const speech: Describe = ({ body }) => {
  const name = `"speech.${body['response_format'] ?? 'mp3'}"`;
  return {
    client: 'openai',
    method: 'audio.speech.create',
    members: body,
    result: 'answer',
    after: {
      python: `answer.write_to_file(${name})`,
      javascript: `writeFileSync(${name}, Buffer.from(await answer.arrayBuffer()));`,
    },
  };
};

const transcription: Describe = ({ body, file }) => {
  const isJson = String(body['response_format'] ?? 'json').endsWith('json');
  return {
    client: 'openai',
    method: 'audio.transcriptions.create',
    members: { ...body, file: new OpenedFile(file?.name ?? 'speech.mp3') },
    result: 'answer',
    after: {
      python: `print(answer${isJson ? '.text' : ''})`,
      javascript: `console.log(answer${isJson ? '.text' : ''});`,
    },
  };
};

const embedding: Describe = ({ body }) => ({
  client: 'openai',
  method: 'embeddings.create',
  members: body,
  result: 'answer',
  after: {
    python: 'for row in answer.data:\n    print(row.index, len(row.embedding), row.embedding[:3])',
    javascript:
      'for (const { index, embedding } of answer.data) console.log(index, embedding.length, embedding.slice(0, 3));',
  },
});

/** The SDK has no method for it, and calls every path. */
const rerank: Describe = ({ body }) => ({
  client: 'openai',
  method: 'post',
  path: '/rerank',
  members: body,
  result: 'answer',
  after: {
    python: 'for row in answer["results"]:\n    print(row["index"], row["relevance_score"])',
    javascript: 'for (const { index, relevance_score } of answer.results) console.log(index, relevance_score);',
  },
});

const moderation: Describe = ({ body }) => ({
  client: 'openai',
  method: 'moderations.create',
  members: body,
  result: 'answer',
  after: { python: 'print(answer.results[0].flagged)', javascript: 'console.log(answer.results[0].flagged);' },
});

const described: Readonly<Record<CallName, Describe>> = {
  chat,
  responses,
  messages,
  gemini,
  image,
  video,
  speech,
  transcription,
  embedding,
  rerank,
  moderation,
};

export const sdkOf = (call: ApiCall): Sdk => described[call.name](call);
