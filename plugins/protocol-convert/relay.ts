/** The way back of a relayed answer: an error becomes a refusal, a success passes byte for byte while a tap looks. */
import type { Answer, Exchange, Headers } from '../../core/contract.ts';
import { classify, classifyBody, notAnAnswer } from '../../core/refusals.ts';
import { maxScrubbedBytes } from '../../core/scrub.ts';
import { meter, target, type UsageReport, usageReport } from '../../core/vocabulary.ts';
import { isObject, tryParseBytes } from './json.ts';
import type { Opened, Prepared, Tap } from './protocol.ts';
import { LiveReport } from './report.ts';
import { RelayStream } from './stream.ts';
import { shapeFor, type Tools } from './tools.ts';

/** Calls that run no inference consume nothing. */
export const nothingUsed: UsageReport = {
  usage: {},
  estimated: false,
  terminal: true,
  upstreamId: undefined,
  finish: undefined,
};

/**
 * The answer for the client, and its usage stated as a fact. Throws an UpstreamRefusal for whatever is no answer of the protocol, as long as nothing
 * has reached the client. Bodies of errors are read as far as they could be handed on. `ended` is told the tap when the answer
 * is complete, before the client knows it.
 */
export async function relayAnswer(
  exchange: Exchange,
  opened: Opened,
  prepared: Prepared,
  answer: Answer,
  tools: Pick<Tools, 'clock' | 'shape'>,
  ended?: (tap: Tap) => void,
): Promise<Answer> {
  if (answer.status >= 300) {
    const body = await wholeBody(answer.body, maxScrubbedBytes);
    const refusal = classify(answer.status, answer.headers, body, tools.clock.now(), keyOf(exchange));
    if (refusal.hasUsage) stateUsage(exchange, opened, body);
    throw refusal;
  }
  if (isHtml(answer.headers)) {
    if (!isWhole(answer.body)) await answer.body[Symbol.asyncIterator]().return?.();
    throw notAnAnswer('a page came instead of an answer', false);
  }
  const relayed = opened.call.stream
    ? await relayStream(exchange, opened, prepared, answer, tools, ended)
    : await relayWhole(exchange, opened, answer, tools, ended);
  if (prepared.dropped.length > 0) relayed.headers['x-gateway-dropped'] = prepared.dropped.join(', ');
  return relayed;
}

/** A refusal that tells of usage was billed. */
function stateUsage(exchange: Exchange, { protocol, call }: Opened, body: Uint8Array): void {
  const json = tryParseBytes(body);
  if (!isObject(json)) return;
  const tap = protocol.createTap(call, { withholdUsage: false });
  tap.whole(json);
  exchange.set(usageReport, new LiveReport(tap, call));
}

async function relayWhole(
  exchange: Exchange,
  opened: Opened,
  answer: Answer,
  tools: Pick<Tools, 'clock' | 'shape'>,
  ended?: (tap: Tap) => void,
): Promise<Answer> {
  const { protocol, call, reshape } = opened;
  const body = await wholeBody(answer.body, Number.POSITIVE_INFINITY);
  const json = tryParseBytes(body);
  if (!isObject(json)) throw notAnAnswer('the body is no JSON object', body[0] !== 0x3c);
  const tap = protocol.createTap(call, { withholdUsage: false });
  tap.whole(json);
  if (tap.error !== undefined) throw classifyBody(tap.error, answer.headers, body, tools.clock.now(), keyOf(exchange));
  const report = new LiveReport(tap, call);
  report.broken = tap.finish === 'failed';
  exchange.set(usageReport, call.billable ? report : nothingUsed);
  reshape?.begin?.(report);
  ended?.(tap);
  return {
    status: answer.status,
    headers: { 'content-type': reshape?.wholeType ?? answer.headers['content-type'] ?? 'application/json' },
    body: reshape === undefined ? body : reshape.whole(json),
  };
}

async function relayStream(
  exchange: Exchange,
  opened: Opened,
  prepared: Prepared,
  answer: Answer,
  tools: Pick<Tools, 'clock' | 'shape'>,
  ended?: (tap: Tap) => void,
): Promise<Answer> {
  const { protocol, call, reshape: form } = opened;
  const tap = protocol.createTap(call, { withholdUsage: prepared.withholdUsage ?? false });
  const report = new LiveReport(tap, call);
  // Stated before anything is pulled: a client may leave at any moment, and a body that nobody pulls runs no code.
  exchange.set(usageReport, report);
  form?.begin?.(report);
  const source = isWhole(answer.body) ? [asBytes(answer.body)].values() : answer.body[Symbol.asyncIterator]();
  const stream = new RelayStream({
    source,
    exchange,
    protocol,
    call,
    reshape: form,
    key: () => keyOf(exchange),
    tap,
    report,
    clock: tools.clock,
    meter: exchange.find(meter),
    shapeOf: shapeFor(exchange, tools),
    ended: () => ended?.(tap),
  });
  const reshape = await stream.open();
  const type = answer.headers['content-type'];
  return {
    status: answer.status,
    headers: {
      'content-type': reshape?.streamType ?? (type?.startsWith('text/event-stream') ? type : 'text/event-stream'),
      'cache-control': 'no-cache',
    },
    body: stream,
    idleFrame: () => stream.idleFrame(),
  };
}

/** Vendors may quote it. */
function keyOf(exchange: Exchange): string | undefined {
  return exchange.find(target)?.key.reveal();
}

function isHtml(headers: Headers): boolean {
  return /^(?:text\/html|application\/xhtml)/i.test(headers['content-type'] ?? '');
}

function isWhole(body: Answer['body']): body is Uint8Array | string {
  return typeof body === 'string' || body instanceof Uint8Array;
}

function asBytes(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

/** Reads no further than `maxBytes` and a chunk. */
export async function wholeBody(body: Answer['body'], maxBytes: number): Promise<Uint8Array> {
  if (isWhole(body)) return asBytes(body);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks);
}
