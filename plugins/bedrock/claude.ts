/** Claude by InvokeModel: the messages protocol at `/model/{id}/invoke` and `/model/{id}/invoke-with-response-stream`. */
import { UpstreamError } from '../../core/contract/upstream-failures.ts';
import { isObject, type JsonObject, listOf, textOf, tryParse } from '../../core/json/json.ts';
import { formatFrame } from '../common/kit/sse.ts';
import type { VariantProtocol, VariantRequest } from '../common/wire/protocols.ts';
import { readError } from './errors.ts';
import { chunkStream } from './event-stream.ts';
import { invokeHeaders, invokePath, withoutMetrics } from './invoke.ts';

/** Requests with other beta features are refused as a whole. From the vendor's page of request members of Claude. */
const knownBetas = [
  ...['computer-use-2024-10-22', 'computer-use-2025-01-24', 'token-efficient-tools-2025-02-19'],
  ...['interleaved-thinking-2025-05-14', 'output-128k-2025-02-19', 'dev-full-thinking-2025-05-14'],
  ...['context-1m-2025-08-07', 'context-management-2025-06-27', 'effort-2025-11-24'],
  ...['tool-search-tool-2025-10-19', 'tool-examples-2025-10-29'],
];

/** The address names the model and whether to stream; the body has the version and beta features. */
export const claude: VariantProtocol = {
  name: 'bedrock-claude',
  variantOf: 'messages',
  path: '/model/{model}/invoke',
  ...invokeHeaders,
  members,
  address: (_path, { model, stream }) => invokePath(model, stream),
  framing: chunkStream(claudeEvents),
  readError,
};

function members({ json, headers, traits }: VariantRequest) {
  const requested = [
    ...(headers['anthropic-beta'] ?? '').split(',').map((name) => name.trim()),
    ...listOf(json['anthropic_beta']).flatMap((name) => textOf(name) ?? []),
  ];
  const all = [...new Set(requested)].filter((name) => name !== '');
  const known = traits.betas ?? knownBetas;
  const betas = all.filter((name) => known.includes(name));
  return {
    set: { anthropic_version: 'bedrock-2023-05-31', ...(betas.length === 0 ? {} : { anthropic_beta: betas }) },
    remove: ['model', 'stream', ...(betas.length === 0 ? ['anthropic_beta'] : [])],
    ...(betas.length === all.length ? {} : { dropped: ['anthropic-beta'] }),
  };
}

/** The events of a stream as frames. Where no event reports usage, the metrics of the last one do. */
function claudeEvents(): (data: string) => string {
  let hasUsage = false;
  return (data) => {
    const type = /^\{\s*"type"\s*:\s*"(content_block_\w+|ping)"/.exec(data)?.[1];
    if (type !== undefined) return formatFrame(data, type);
    const json = tryParse(data);
    if (!isObject(json)) throw new UpstreamError('body', 'a chunk of the stream is no JSON object');
    hasUsage ||= json['type'] === 'message_delta' && isObject(json['usage']);
    const { rest, metrics } = withoutMetrics(json);
    const missing = hasUsage || metrics === undefined ? '' : usageFrame(metrics);
    return missing + formatFrame(metrics === undefined ? data : JSON.stringify(rest), textOf(json['type']));
  };
}

const counters = {
  input_tokens: 'inputTokenCount',
  output_tokens: 'outputTokenCount',
  cache_read_input_tokens: 'cacheReadInputTokenCount',
  cache_creation_input_tokens: 'cacheWriteInputTokenCount',
};

function usageFrame(metrics: JsonObject): string {
  const usage = Object.fromEntries(
    Object.entries(counters).flatMap(([name, count]) => (metrics[count] === undefined ? [] : [[name, metrics[count]]])),
  );
  return formatFrame(JSON.stringify({ type: 'message_delta', delta: {}, usage }), 'message_delta');
}
