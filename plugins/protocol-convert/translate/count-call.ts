/** Token counting where the request cannot be relayed to the upstream's own counting endpoint. */

import { type Exchange, type Next, upstreamRequest } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, tryParseBytes } from '../../../core/json/json.ts';
import { DroppedParameters } from '../../common/canonical/dropped-parameters.ts';
import { usageReport } from '../../common/domain/calls.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { maxScrubbedBytes } from '../../common/kit/scrub.ts';
import { classify, notAnAnswer } from '../../common/kit/upstream-errors.ts';
import { buildUpstreamRequest } from '../../common/kit/upstream-request.ts';
import { wholeBody } from '../../common/wire/answer-body.ts';
import type { Opened } from '../../common/wire/protocols.ts';
import { type Attempt, accountOf, type Tools } from '../dependencies.ts';
import { estimateTokens } from '../metering/estimate-tokens.ts';
import { nothingUsed } from '../relay/relay.ts';
import { mustEstimate } from '../state/emulation.ts';
import { decoding, encodeRequest } from './call.ts';
import { boundsOf, encodedBody } from './large-body.ts';
import { foreignRefusal } from './upstream-error.ts';

/** Whether a count, which is not billable, cannot be relayed. */
export function mustCount(opened: Opened, target: Target): boolean {
  return target.protocol !== opened.protocol.name || mustEstimate(opened, target);
}

/** The upstream counts in its own protocol if it can, else the gateway estimates; never an inference, never billed. */
export async function countCall(attempt: Attempt, next: Next): Promise<Answer> {
  const { exchange, opened: requested, upstream, target, tools } = attempt;
  exchange.set(usageReport, nothingUsed);
  const opened = unwrapped(requested);
  const { counting } = upstream.codec;
  const client = requested.protocol.name;
  if (counting === undefined || mustEstimate(opened, target))
    return countAnswer(client, await estimate(exchange, opened, tools), true);
  const { encoded, large } = await encodeRequest({ ...attempt, opened });
  const { path, body } = counting.request(encoded);
  const prepared = { path, body: await encodedBody(exchange, body, large), dropped: [] };
  const bare = { ...exchange.request, headers: {} };
  exchange.set(upstreamRequest, buildUpstreamRequest(upstream, bare, prepared, target, false));
  const tokens = counting.tokens(await jsonOf(await next(), tools, target));
  if (tokens === undefined) return countAnswer(client, await estimate(exchange, opened, tools), true);
  return countAnswer(client, tokens, false);
}

/** Unwraps the official wrapper around a request to be counted. */
function unwrapped(opened: Opened): Opened {
  const inner = opened.json['generateContentRequest'] ?? opened.json['generate_content_request'];
  return isObject(inner) ? { ...opened, json: inner } : opened;
}

async function estimate(exchange: Exchange, opened: Opened, { sealer, config }: Tools): Promise<number> {
  const codec = decoding(opened);
  const account = accountOf(exchange);
  const droppedParameters = new DroppedParameters(codec.spelling);
  boundsOf(exchange, opened, config)?.json(opened.json);
  return estimateTokens(
    codec.decodeRequest(opened.json, { dropped: droppedParameters, open: (text) => sealer.open(text, account) }),
  );
}

async function jsonOf(answer: Answer, { clock }: Tools, { key }: Target): Promise<JsonObject> {
  const body = await wholeBody(answer.body, maxScrubbedBytes);
  if (answer.status >= 300) {
    throw foreignRefusal(classify(answer.status, answer.headers, body, clock.now(), key.reveal()));
  }
  const json = tryParseBytes(body);
  if (!isObject(json)) throw notAnAnswer('the body is no JSON object', false);
  return json;
}

const shapes: Readonly<Record<string, (tokens: number) => JsonObject>> = table({
  messages: (tokens) => ({ input_tokens: tokens }),
  responses: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  gemini: (tokens) => ({ totalTokens: tokens }),
});

/** Marks a count that the gateway estimated. */
const estimatedHeader = 'x-gateway-estimated';

/** The answer to a client of `protocol`, which must have a counting endpoint. */
export function countAnswer(protocol: string, tokens: number, isEstimated: boolean): Answer {
  const shape = shapes[protocol];
  if (shape === undefined) throw new Error(`the protocol ${protocol} counts no tokens`);
  return {
    status: 200,
    headers: { 'content-type': 'application/json', ...(isEstimated ? { [estimatedHeader]: 'true' } : {}) },
    body: JSON.stringify(shape(tokens)),
  };
}
