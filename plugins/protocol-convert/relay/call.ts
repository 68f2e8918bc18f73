/** A call to an upstream of the client's own protocol: byte for byte in both directions. */

import { type Exchange, type Next, upstreamRequest } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { asBuffer, isObject, tryParseBytes } from '../../../core/json/json.ts';
import { sealPrefix } from '../../common/canonical/sealed-text.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { buildUpstreamRequest } from '../../common/kit/upstream-request.ts';
import type { Opened, Prepared } from '../../common/wire/protocols.ts';
import { accountOf, checkDropped, recordConversion, type Tools } from '../dependencies.ts';
import { relayAnswer } from './relay.ts';

/** Throws or rejects as `relayAnswer` does. `give`: called with the client's answer. */
export function relayCall(
  exchange: Exchange,
  opened: Opened,
  target: Target,
  tools: Tools,
  next: Next,
  give: (answer: Answer) => Answer,
): Promise<Answer> {
  const { protocol, call } = opened;
  tools.ids.refuse(opened.vendorIds?.unknown ?? [], target);
  const prepared = withQuery(exchange, withoutSeals(exchange, opened, opened.prepare(target), tools));
  recordConversion(exchange, `relayed as ${protocol.name}`, prepared.dropped, tools);
  checkDropped(prepared.dropped, tools.config);
  exchange.set(upstreamRequest, buildUpstreamRequest(protocol, exchange.request, prepared, target, call.stream));
  const hooks = {
    ended: tools.responseRecorder.recordRelayed(exchange, opened, target),
    issued: tools.ids.recording(exchange, opened, target),
  };
  return next().then((answer) => {
    const relayed = relayAnswer(exchange, opened, prepared, answer, tools, hooks);
    return relayed instanceof Promise ? relayed.then(give) : give(relayed);
  });
}

/** Query members that belong to the gateway: the client's key, and the answer format, which the gateway chooses. */
const ownQuery = new Set(['key', 'access_token', 'oauth_token', 'api_key', 'api-key', 'alt', '$alt']);
/** They would remove usage or change the format of the answer, which the gateway meters and reads. */
const refusedQuery = new Set(['fields', '$fields', 'callback', '$callback']);

/** Forwards the client's query, except for members that belong to the gateway. */
function withQuery(exchange: Exchange, prepared: Prepared): Prepared {
  if (exchange.request.query.size === 0) return prepared;
  const passed = new URLSearchParams();
  const dropped: string[] = [];
  for (const [name, value] of exchange.request.query) {
    const known = name.toLowerCase();
    if (refusedQuery.has(known)) dropped.push(name);
    else if (!ownQuery.has(known)) passed.append(name, value);
  }
  if (passed.size === 0 && dropped.length === 0) return prepared;
  const mark = prepared.path.includes('?') ? '&' : '?';
  const path = passed.size === 0 ? prepared.path : `${prepared.path}${mark}${passed}`;
  return { ...prepared, path, dropped: [...prepared.dropped, ...new Set(dropped)] };
}

/**
 * Removes texts that the gateway sealed into earlier, translated answers: the vendor would refuse them. A body without
 * sealed texts stays as it is, byte for byte.
 */
function withoutSeals(exchange: Exchange, { protocol }: Opened, prepared: Prepared, { sealer }: Tools): Prepared {
  const { codec } = protocol;
  const bytes = asBuffer(prepared.body);
  const mark = codec.sealMark ?? sealPrefix;
  // The mark alone is found many times faster than with its quote, as a body may contain many quotes.
  if (!bytes.includes(mark) || !bytes.includes(`"${mark}`)) return prepared;
  const json = tryParseBytes(prepared.body);
  if (!isObject(json)) return prepared;
  const account = accountOf(exchange);
  const clean = codec.withoutSeals(json, (text) => sealer.open(text, account));
  return { ...prepared, body: Buffer.from(JSON.stringify(clean)) };
}
