/** What of an answer is kept, if it is one to keep. Pure. */
import type { Exchange, Outcome } from '../../core/contract/contract.ts';
import type { Headers } from '../../core/contract/message.ts';
import { type Call, call, type UsageReport, usageReport } from '../common/domain/calls.ts';
import { type Model, model } from '../common/domain/models.ts';
import { readCount, type Usage } from '../common/domain/usage.ts';
import type { BodyCopy } from '../common/wire/answer-body.ts';
import { possibleUsage, unknownSize } from '../common/wire/possible-usage.ts';
import type { Entry } from './entry.ts';
import { isWorthKeeping } from './form.ts';
import type { CachedRequest } from './request.ts';
import { hasPolicies, isAsRequested } from './rules.ts';

/** The answer as it was sent. */
export interface Sent {
  readonly headers: Headers;
  readonly copy: BodyCopy;
}

/** Those that belong to the answer, and not to the exchange. */
export function keptHeaders(headers: Readonly<Headers>): Headers {
  const names = ['content-type', 'content-language', 'x-gateway-dropped'];
  return Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
}

/** The answer as it is kept; undefined: it has not ended well, or is another one than was asked for. */
export function entryOf(
  exchange: Exchange,
  request: CachedRequest,
  { kind, error }: Outcome,
  { headers, copy }: Sent,
  storedAt: number,
): Entry | undefined {
  const report = exchange.find(usageReport);
  const body = copy.whole();
  if (kind === 'failed' || error !== undefined || report?.terminal !== true || body === undefined) return undefined;
  if (report.hasError === true) return undefined;
  if (exchange.find(model) !== request.model || !hasPolicies(exchange, request.policies)) return undefined;
  const requested = exchange.get(call);
  if (!isAsRequested(requested, report.services, report.media)) return undefined;
  const usage = usageOf(report, requested, request.model, body.length);
  if (usage === undefined) return undefined;
  const isStream = headers['content-type']?.startsWith('application/json') !== true && requested.stream;
  const entry = { key: request.place.key, headers, body, form: request.form, isStream, usage, storedAt };
  return isWorthKeeping(entry, request.opened) ? entry : undefined;
}

/** By which hits are charged. undefined: the vendor has reported what such a call cannot have consumed, and estimates are no price for others. */
function usageOf({ usage, seen }: UsageReport, requested: Call, entry: Model | undefined, bytes: number) {
  const counts: Usage = Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== undefined));
  if (Object.values(counts).some((count) => readCount(count) !== count)) return undefined;
  const most = seen ?? { bytes, tokens: bytes };
  return possibleUsage(counts, requested, entry ?? unknownSize, most) === counts ? counts : undefined;
}
