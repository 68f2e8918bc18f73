/** Nova by InvokeModel: bodies nearly as in Converse, and its events as chunks with one member each. */
import { UpstreamError } from '../../core/contract/upstream-failures.ts';
import { isObject, type JsonObject, objectOf, tryParse } from '../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../common/canonical/codec.ts';
import type { Prompt } from '../common/canonical/prompt.ts';
import { formatFrame } from '../common/kit/sse.ts';
import { openingNamed } from '../common/wire/opening-frames.ts';
import type { WireProtocol } from '../common/wire/protocols.ts';
import { ConverseDecoder, decodeReply } from './decode.ts';
import { encodeRequest } from './encode.ts';
import { readError } from './errors.ts';
import { chunkStream } from './event-stream.ts';
import { invokeHeaders, invokePath, withoutMetrics } from './invoke.ts';
import { ConverseUsageMeter } from './usage-meter.ts';

export const nova: WireProtocol = {
  name: 'bedrock-nova',
  path: '/model/{model}/invoke',
  answersOnce: true,
  ...invokeHeaders,
  codec: {
    needsBytes: ['image', 'document'],
    plainCallIds: true,
    encodeRequest: encodeNova,
    createDecoder: (events) => new ConverseDecoder(events),
    decodeReply,
  },
  createUsageMeter: () => new ConverseUsageMeter(),
  isOpening: openingNamed('messageStart'),
  framing: chunkStream(novaEvents),
  readError,
};

function encodeNova(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const { reasoning, efforts = ['low', 'medium'] } = context.traits;
  const traits = {
    ...context.traits,
    // The highest effort forbids a bound on the answer: it is used where the traits name it.
    ...{ reasoning: reasoning === 'effort' ? reasoning : ('none' as const), efforts },
    structured: 'instruction' as const,
  };
  const encoded = encodeRequest(prompt, { ...context, traits });
  const { additionalModelRequestFields: more, ...body } = encoded.body;
  const effort = objectOf(more)?.['reasoning_effort'];
  const settings = objectOf(body['inferenceConfig']) ?? {};
  const reasoningConfig = { type: 'enabled', maxReasoningEffort: effort };
  return {
    ...encoded,
    path: invokePath(context.target.model, context.stream),
    body: {
      schemaVersion: 'messages-v1',
      ...body,
      ...(effort === undefined ? {} : { inferenceConfig: { ...settings, reasoningConfig } }),
    },
  };
}

/** Where no event reports usage, the metrics of the last chunk do. */
function novaEvents(): (data: string) => string {
  let hasUsage = false;
  return (data) => {
    const json = tryParse(data);
    if (!isObject(json)) throw new UpstreamError('body', 'a chunk of the stream is no JSON object');
    const { rest, metrics } = withoutMetrics(json);
    const isCounted = isObject(objectOf(rest['metadata'])?.['usage']);
    const counted =
      metrics === undefined || hasUsage || isCounted ? rest : { ...rest, metadata: { usage: usageOf(metrics) } };
    hasUsage ||= isCounted;
    return Object.entries(counted)
      .map(([event, body]) => (/^\w+$/.test(event) ? formatFrame(JSON.stringify(body), event) : ''))
      .join('');
  };
}

function usageOf(metrics: JsonObject): JsonObject {
  const { inputTokenCount: inputTokens, outputTokenCount: outputTokens, ...caches } = metrics;
  return { inputTokens, outputTokens, ...caches };
}
