/** Bedrock's InvokeModel: each family of models in its own format, read as strictly as the real one. */
import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import type { Play } from '../../matrix/scenario.ts';
import { messagesVendor } from '../../matrix/vendors/messages.ts';
import { type Json, object } from '../../matrix/vendors/pieces.ts';
import { checkRequest, events, whole } from './converse-format.ts';
import { event } from './event-messages.ts';
import { joined, type Message } from './google-stand-in.ts';
import { type Format, llama, llama4, mistral, mistralText } from './plain-formats.ts';

export interface InvokeAnswer {
  whole(): string;
  /** Headers of a whole answer. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The stream's messages. */
  messages(): Buffer[];
}

export const models = {
  claude: 'eu.anthropic.claude-test-4-v1:0',
  nova: 'eu.amazon.nova-test-v1:0',
  llama: 'eu.meta.llama3-test-v1:0',
  llama4: 'eu.meta.llama4-test-v1:0',
  mistral: 'eu.mistral.mistral-test-2407-v1:0',
  'mistral-text': 'eu.mistral.mistral-test-v0:2',
} as const;

const claude: Format = {
  read({ anthropic_version: version, anthropic_beta: _betas, ...others }) {
    assert.equal(version, 'bedrock-2023-05-31');
    assert.ok(!('model' in others) && !('stream' in others));
    const messages = joined(others['messages'] as Message[]);
    const body = Buffer.from(JSON.stringify({ model: models.claude, ...others, messages }));
    const headers = { 'x-api-key': 'vendor-key', 'anthropic-version': '2023-06-01' };
    messagesVendor.read({ url: '/v1/messages', headers, body } as unknown as Parameters<typeof messagesVendor.read>[0]);
  },
  whole: (play) => messagesVendor.whole(play, models.claude),
  chunks: (play) =>
    messagesVendor.stream(play, models.claude).map((frame) => frame.slice(frame.indexOf('data: ') + 6).trimEnd()),
};

const nova: Format = {
  read({ schemaVersion: version, ...others }) {
    assert.equal(version, 'messages-v1');
    for (const name of ['additionalModelRequestFields', 'outputConfig']) assert.ok(!(name in others), name);
    const { reasoningConfig, ...inferenceConfig } = object(others['inferenceConfig'] ?? {}, 'inferenceConfig');
    if (reasoningConfig !== undefined)
      assert.match(JSON.stringify(reasoningConfig), /^\{"type":"enabled","maxReasoningEffort":"(low|medium|high)"\}$/);
    checkRequest({ ...others, inferenceConfig });
  },
  whole: (play) => JSON.stringify(whole(play, novaUsage(play))),
  chunks: (play) =>
    events(play, novaUsage(play)).map(([type, body]) => {
      const { p: _padding, ...own } = body as { p?: string };
      return JSON.stringify({ [type]: own });
    }),
};

/** The caches are named otherwise than in Converse. */
function novaUsage({ usage: { input, cacheRead, cacheWrite, output } }: Play): object {
  return {
    inputTokens: input - cacheRead - cacheWrite,
    outputTokens: output,
    totalTokens: input + output,
    cacheReadInputTokenCount: cacheRead,
    cacheWriteInputTokenCount: cacheWrite,
  };
}

const formats: Readonly<Record<string, Format>> = {
  ...{ [models.claude]: claude, [models.nova]: nova, [models.llama]: llama, [models.llama4]: llama4 },
  ...{ [models.mistral]: mistral, [models['mistral-text']]: mistralText },
};

/** The chunks of a stream, without the vendor's metrics. */
export function chunksOf(model: string, play: Play): string[] {
  return formats[model]!.chunks(play);
}

export function invoked(
  model: string,
  headers: IncomingHttpHeaders,
  json: Json,
  { play, counts }: { readonly play: Play; readonly counts: boolean },
): InvokeAnswer {
  const format = formats[model];
  assert.ok(format, model);
  assert.equal(headers.accept, 'application/json');
  assert.equal(headers['content-type'], 'application/json');
  for (const name of ['anthropic-version', 'anthropic-beta']) assert.equal(headers[name], undefined);
  format.read(json);
  return {
    whole: () => format.whole(play),
    headers: {
      'x-amzn-bedrock-input-token-count': String(play.usage.input - play.usage.cacheRead - play.usage.cacheWrite),
      'x-amzn-bedrock-output-token-count': String(play.usage.output),
    },
    messages: () =>
      format.chunks(play).map((chunk, index, all) => chunkMessage(chunk, counts && index === all.length - 1, play)),
  };
}

export function metricsOf({ usage: { input, cacheRead, cacheWrite, output } }: Play) {
  return {
    inputTokenCount: input - cacheRead - cacheWrite,
    outputTokenCount: output,
    invocationLatency: 400,
    firstByteLatency: 100,
    cacheReadInputTokenCount: cacheRead,
    cacheWriteInputTokenCount: cacheWrite,
  };
}

function chunkMessage(chunk: string, isLast: boolean, play: Play): Buffer {
  const last = isLast && { 'amazon-bedrock-invocationMetrics': metricsOf(play) };
  const whole = isLast ? JSON.stringify({ ...(JSON.parse(chunk) as object), ...last }) : chunk;
  return event('chunk', { bytes: Buffer.from(whole).toString('base64'), p: 'abcdefghij' });
}
