/** A call for an upstream of the client's own protocol: byte for byte there and back. */
import { type Answer, type Exchange, type Next, upstreamRequest } from '../../core/contract.ts';
import type { Target } from '../../core/vocabulary.ts';
import { readRequestBody } from './checks.ts';
import type { Opened, ProtocolEndpoint } from './protocol.ts';
import { relayAnswer } from './relay.ts';
import { sealPrefix } from './seal.ts';
import { accountOf, checkLosses, type Tools } from './tools.ts';
import { wordUpstreamRequest } from './upstream-request.ts';

/** Throws as `relayAnswer` does. `endpoint` opens the request again where it must not go out as it came. */
export async function relayCall(
  exchange: Exchange,
  opened: Opened,
  endpoint: ProtocolEndpoint,
  target: Target,
  tools: Tools,
  next: Next,
): Promise<Answer> {
  const request = withoutSeals(exchange, opened, endpoint, tools);
  const prepared = request.prepare(target);
  checkLosses(prepared.dropped, tools.config);
  const { protocol, call } = request;
  exchange.set(upstreamRequest, wordUpstreamRequest(protocol, exchange.request, prepared, target, call.stream));
  const ended = tools.keeper.relaying(exchange, request, target);
  return relayAnswer(exchange, request, prepared, await next(), tools.clock, ended);
}

/** What the gateway sealed into earlier, translated answers is of no use to a vendor, which would refuse it. */
function withoutSeals(exchange: Exchange, opened: Opened, endpoint: ProtocolEndpoint, { sealer }: Tools): Opened {
  const { codec } = opened.protocol;
  const { body } = exchange.request;
  const mark = `"${codec.sealMark ?? sealPrefix}`;
  if (!Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(mark)) return opened;
  const account = accountOf(exchange);
  const json = codec.withoutSeals(opened.json, (text) => sealer.open(text, account));
  return endpoint.open(readRequestBody(Buffer.from(JSON.stringify(json))), exchange);
}
