/** A call for an upstream of the client's own protocol: byte for byte there and back. */
import { type Answer, type Exchange, type Next, upstreamRequest } from '../../core/contract.ts';
import type { Target } from '../../core/vocabulary.ts';
import { isObject, tryParseBytes } from './json.ts';
import type { Opened, Prepared } from './protocol.ts';
import { relayAnswer } from './relay.ts';
import { sealPrefix } from './seal.ts';
import { accountOf, checkLosses, noteWay, type Tools } from './tools.ts';
import { wordUpstreamRequest } from './upstream-request.ts';

/** Throws as `relayAnswer` does. */
export async function relayCall(
  exchange: Exchange,
  opened: Opened,
  target: Target,
  tools: Tools,
  next: Next,
): Promise<Answer> {
  const { protocol, call } = opened;
  const prepared = withoutSeals(exchange, opened, opened.prepare(target), tools);
  noteWay(exchange, `relayed as ${protocol.name}`, prepared.dropped, tools);
  checkLosses(prepared.dropped, tools.config);
  exchange.set(upstreamRequest, wordUpstreamRequest(protocol, exchange.request, prepared, target, call.stream));
  const ended = tools.keeper.relaying(exchange, opened, target);
  return relayAnswer(exchange, opened, prepared, await next(), tools, ended);
}

/**
 * What the gateway sealed into earlier, translated answers is of no use to a vendor, which would refuse it. Without any
 * the body stays as it is, byte for byte.
 */
function withoutSeals(exchange: Exchange, { protocol }: Opened, prepared: Prepared, { sealer }: Tools): Prepared {
  const { codec } = protocol;
  const { buffer, byteOffset, byteLength } = prepared.body;
  if (!Buffer.from(buffer, byteOffset, byteLength).includes(`"${codec.sealMark ?? sealPrefix}`)) return prepared;
  const json = tryParseBytes(prepared.body);
  if (!isObject(json)) return prepared;
  const account = accountOf(exchange);
  const clean = codec.withoutSeals(json, (text) => sealer.open(text, account));
  return { ...prepared, body: Buffer.from(JSON.stringify(clean)) };
}
