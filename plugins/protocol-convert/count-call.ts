/** A client's wish to have its prompt counted, where the upstream cannot be asked in the client's words. */
import { type Answer, type Exchange, type Next, upstreamRequest } from '../../core/contract.ts';
import { classify, notAnAnswer } from '../../core/refusals.ts';
import { maxScrubbedBytes } from '../../core/scrub.ts';
import { type Target, usageReport } from '../../core/vocabulary.ts';
import { countAnswer } from './counting/count-answer.ts';
import { estimateTokens } from './counting/estimate-tokens.ts';
import { foreignRefusal } from './foreign-error.ts';
import { isObject, type JsonObject, tryParseBytes } from './json.ts';
import { Losses } from './losses.ts';
import type { Opened, Protocol } from './protocol.ts';
import { nothingUsed, wholeBody } from './relay.ts';
import { mustEstimate } from './state/emulation.ts';
import { accountOf, type Tools } from './tools.ts';
import { decoding, wordRequest } from './translate-call.ts';
import { wordUpstreamRequest } from './upstream-request.ts';

/** A count is wanted that the upstream cannot be asked for as it came. */
export function mustCount(opened: Opened, target: Target): boolean {
  return !opened.call.billable && (target.protocol !== opened.protocol.name || mustEstimate(opened, target));
}

/** Counted by the upstream in its own way if it has one, else estimated; never an inference, never billed. */
export async function countCall(
  exchange: Exchange,
  asked: Opened,
  upstream: Protocol,
  target: Target,
  tools: Tools,
  next: Next,
): Promise<Answer> {
  exchange.set(usageReport, nothingUsed);
  const opened = unwrapped(asked);
  const { counting } = upstream.codec;
  const client = asked.protocol.name;
  if (counting === undefined || mustEstimate(opened, target))
    return countAnswer(client, await estimate(exchange, opened, tools), true);
  const { encoded } = await wordRequest(exchange, opened, upstream, target, tools);
  const { path, body } = counting.request(encoded);
  const prepared = { path, body: Buffer.from(JSON.stringify(body)), dropped: [] };
  const bare = { ...exchange.request, headers: {} };
  exchange.set(upstreamRequest, wordUpstreamRequest(upstream, bare, prepared, target, false));
  const tokens = counting.tokens(await jsonOf(await next(), tools, target));
  if (tokens === undefined) return countAnswer(client, await estimate(exchange, opened, tools), true);
  return countAnswer(client, tokens, false);
}

/** The official wrapper of a whole request around which only its count is asked. */
function unwrapped(opened: Opened): Opened {
  const inner = opened.json['generateContentRequest'] ?? opened.json['generate_content_request'];
  return isObject(inner) ? { ...opened, json: inner } : opened;
}

function estimate(exchange: Exchange, opened: Opened, { sealer }: Tools): Promise<number> {
  const codec = decoding(opened);
  const account = accountOf(exchange);
  const losses = new Losses(codec.spelling);
  return estimateTokens(codec.decodeRequest(opened.json, { losses, open: (text) => sealer.open(text, account) }));
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
