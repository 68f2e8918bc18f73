/** The response of a relayed call: an error becomes a refusal, a success passes byte for byte through a usage meter. */

import type { Exchange } from '../../../core/contract/contract.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import type { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { isObject, type JsonObject, tryParseBytes } from '../../../core/json/json.ts';
import { droppedHeader } from '../../common/canonical/dropped-parameters.ts';
import { spendGuard, type UsageReport, usageReport } from '../../common/domain/calls.ts';
import { instead, model } from '../../common/domain/models.ts';
import { cost } from '../../common/domain/money.ts';
import { type PriceBook, priceFor, type Services } from '../../common/domain/prices.ts';
import { target } from '../../common/domain/upstreams.ts';
import type { Usage, UsageClass } from '../../common/domain/usage.ts';
import { maxScrubbedBytes } from '../../common/kit/scrub.ts';
import { classify, classifyBody, notAnAnswer } from '../../common/kit/upstream-errors.ts';
import { asBytes, isWhole, wholeBody } from '../../common/wire/answer-body.ts';
import { unknownSize } from '../../common/wire/possible-usage.ts';
import type { AnsweringProtocol, Opened, Prepared } from '../../common/wire/protocols.ts';
import type { CostOf } from '../../common/wire/readings.ts';
import type { UsageMeter, UsageMeterOptions } from '../../common/wire/usage-meter.ts';
import { shapeFor, type Tools } from '../dependencies.ts';
import { LiveReport } from '../metering/report.ts';
import type { RelayHooks } from './hooks.ts';
import { refuseKeptBack } from './opening.ts';
import { RelayStream } from './stream.ts';

/** Calls that run no inference consume nothing. */
export const nothingUsed: UsageReport = {
  usage: {},
  estimated: false,
  terminal: true,
  upstreamId: undefined,
  finish: undefined,
};

type AnswerTools = Pick<Tools, 'clock' | 'shape' | 'openingMs'>;

/** A request as far as its answer depends on it; where the answer is translated, `protocol` is the upstream's. */
export interface Answered extends Pick<Opened, 'call' | 'reshape'> {
  readonly protocol: AnsweringProtocol;
}

/** A request of which the answer is relayed. */
export interface RelayedCall {
  readonly exchange: Exchange;
  readonly opened: Answered;
  readonly prepared: Pick<Prepared, 'dropped' | 'withholdUsage'>;
  readonly tools: AnswerTools;
  readonly hooks: RelayHooks;
}

/**
 * The answer for the client, at once where its body is whole; its usage report is set on the exchange. Throws or rejects with an
 * UpstreamRefusal for a response that is no answer of the protocol, as long as nothing was sent to the client. Error bodies are
 * read up to the bound for forwarded bodies.
 */
export function relayAnswer(relayedCall: RelayedCall, answer: Answer): Answer | Promise<Answer> {
  const { body, headers, status } = answer;
  const isJson = headers['content-type']?.startsWith('application/json') === true;
  if (status >= 300 || (!isJson && isHtml(headers))) return refuse(relayedCall, answer);
  if (relayedCall.opened.call.stream) return relayStream(relayedCall, answer);
  if (relayedCall.hooks.otherForm !== undefined && !isJson && isEventStream(headers))
    return relayStream(relayedCall, answer);
  if (isWhole(body)) return relayWhole(relayedCall, answer, asBytes(body));
  return wholeBody(body, Number.POSITIVE_INFINITY).then((bytes) => relayWhole(relayedCall, answer, bytes));
}

function withDropped({ dropped }: Pick<Prepared, 'dropped'>, relayed: Answer): Answer {
  if (dropped.length > 0) relayed.headers['x-gateway-dropped'] = droppedHeader(dropped);
  return relayed;
}

async function refuse(relayedCall: RelayedCall, { status, headers, body }: Answer): Promise<never> {
  const { exchange, opened, tools } = relayedCall;
  if (status < 300) {
    if (!isWhole(body)) await body[Symbol.asyncIterator]().return?.();
    throw notAnAnswer('a page came instead of an answer', false);
  }
  const bytes = readable(await wholeBody(body, maxScrubbedBytes), headers, opened.protocol);
  const refusal = classify(status, headers, bytes, tools.clock.now(), keyOf(exchange));
  if (refusal.hasUsage) setUsage(relayedCall, bytes, headers);
  throw refusal;
}

/** The error body in a form that `classify` reads. */
function readable(body: Uint8Array, headers: Headers, { readError }: AnsweringProtocol): Uint8Array {
  const json = readError === undefined ? undefined : tryParseBytes(body);
  return isObject(json) ? Buffer.from(JSON.stringify(readError!(json, headers))) : body;
}

/** A refusal that reports usage was billed. */
function setUsage(relayedCall: RelayedCall, body: Uint8Array, headers: Headers): void {
  const json = tryParseBytes(body);
  if (!isObject(json)) return;
  const { exchange, opened } = relayedCall;
  const { protocol, call } = opened;
  const usageMeter = protocol.createUsageMeter(call, usageMeterOptions({ ...relayedCall, hooks: {} }, headers));
  usageMeter.whole(json);
  exchange.set(usageReport, new LiveReport(usageMeter, call, exchange.find(model) ?? unknownSize));
}

function relayWhole(relayedCall: RelayedCall, answer: Answer, body: Uint8Array): Answer | Promise<Answer> {
  const { exchange, opened, hooks } = relayedCall;
  const { protocol, call, reshape } = opened;
  const json = tryParseBytes(body);
  if (!isObject(json) && hooks.otherForm !== undefined && beginsStream(body, protocol))
    return relayStream(relayedCall, { ...answer, body }, false);
  if (!isObject(json)) throw notAnAnswer('the body is no JSON object', body[0] !== 0x3c);
  const usageMeter = protocol.createUsageMeter(call, usageMeterOptions(relayedCall, answer.headers));
  usageMeter.whole(json);
  const report = new LiveReport(usageMeter, call, exchange.find(model) ?? unknownSize);
  if (call.stream) requireAnswer(usageMeter);
  const { error } = usageMeter;
  if (error !== undefined) {
    const errorBody = error === json ? body : Buffer.from(JSON.stringify(error));
    throw refusalOf(relayedCall, error, { ...answer, body: errorBody }, report);
  }
  exchange.set(usageReport, call.billable ? report : nothingUsed);
  if (exchange.find(instead) !== undefined) refuseKeptBack(exchange, usageMeter, report);
  if (reshape !== undefined) report.look(json);
  reshape?.begin?.(report);
  const give = (converted: Uint8Array) => {
    hooks.ended?.(usageMeter);
    const relayed = {
      status: answer.status,
      headers: { 'content-type': reshape?.wholeType ?? answer.headers['content-type'] ?? 'application/json' },
      body: converted,
    };
    return relayedCall.prepared.dropped.length === 0 ? relayed : withDropped(relayedCall.prepared, relayed);
  };
  const converted = reshape === undefined ? body : reshape.whole(json, body);
  return converted instanceof Promise ? converted.then(give) : give(converted);
}

/** Its usage is charged where the vendor reports any. */
function refusalOf(
  { exchange, opened: { call }, tools }: RelayedCall,
  error: JsonObject,
  { headers, body }: Pick<Answer, 'headers'> & { readonly body: Uint8Array },
  report: LiveReport,
): UpstreamRefusal {
  const refusal = classifyBody(error, headers, body, tools.clock.now(), keyOf(exchange));
  if (refusal.hasUsage && call.billable) exchange.set(usageReport, report);
  return refusal;
}

async function relayStream(
  relayedCall: RelayedCall,
  answer: Answer,
  prefersDocument = !relayedCall.opened.call.stream,
): Promise<Answer> {
  const { exchange, opened, prepared, tools, hooks } = relayedCall;
  const { protocol, call } = opened;
  const other = call.stream ? undefined : hooks.otherForm?.();
  const form = other ?? opened.reshape;
  // An answer in another form has ids of its own.
  const ended = other === undefined ? hooks.ended : undefined;
  const options = usageMeterOptions(relayedCall, answer.headers, prepared.withholdUsage);
  const usageMeter = protocol.createUsageMeter(call, options);
  const report = new LiveReport(usageMeter, call, exchange.find(model) ?? unknownSize);
  // Set before the body is pulled: a client may disconnect at any time, and a body that is never pulled runs no code.
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
    usageMeter: usageMeter,
    report,
    clock: tools.clock,
    heldMs: tools.openingMs,
    prefersDocument,
    meter: exchange.find(spendGuard),
    shapeOf: shapeFor(exchange, tools),
    ended: () => ended?.(usageMeter),
  });
  const reshape = await stream.open();
  if (stream.document !== undefined) return relayDocument(relayedCall, answer, stream.document);
  if (form?.gathered !== undefined) return gathered(stream, form.gathered, prepared, answer.status);
  const type = answer.headers['content-type'];
  return withDropped(prepared, {
    status: answer.status,
    headers: {
      'content-type': reshape?.streamType ?? (type?.startsWith('text/event-stream') ? type : 'text/event-stream'),
      'cache-control': 'no-cache',
    },
    body: stream,
    idleFrame: () => stream.idleFrame(),
    endsNow: () => stream.hasEnded,
    failed: (error) => stream.fail(error),
  });
}

/** A document in the place of a stream may be anything. */
function requireAnswer({ finish, text, error }: UsageMeter): void {
  if (finish === undefined && text.bytes === 0 && error === undefined)
    throw notAnAnswer('a document came instead of a stream', true);
}

/** One document came, from a body that was read as a stream. */
function relayDocument(relayedCall: RelayedCall, answer: Answer, document: Uint8Array): Answer | Promise<Answer> {
  const { opened, hooks } = relayedCall;
  if (!opened.call.stream) return relayWhole(relayedCall, answer, document);
  const { otherForm, issued } = hooks;
  if (otherForm === undefined) throw notAnAnswer('a document came instead of a stream', true);
  return relayWhole(
    { ...relayedCall, opened: { ...opened, reshape: otherForm() }, hooks: { issued } },
    answer,
    document,
  );
}

/** A stream for a client that wants one body: read to its end, then encoded. */
async function gathered(
  stream: RelayStream,
  body: () => Uint8Array | Promise<Uint8Array>,
  prepared: Pick<Prepared, 'dropped'>,
  status: number,
): Promise<Answer> {
  for await (const _ of stream);
  return withDropped(prepared, { status, headers: { 'content-type': 'application/json' }, body: await body() });
}

function usageMeterOptions(
  { exchange, opened, tools, hooks }: RelayedCall,
  headers: Headers,
  withholdUsage = false,
): UsageMeterOptions {
  const { services = {} } = opened.call;
  const { issued, items } = hooks;
  const costOf: CostOf = (usage) => ownCost(exchange, usage, { at: tools.clock.now(), services });
  const sold = exchange.find(model)?.prices;
  if (sold === undefined) return { headers, withholdUsage, issued, items, costOf };
  return { headers, withholdUsage, issued, items, costOf, isPriced: (name) => names(sold, name) };
}

function names(book: PriceBook, name: UsageClass): boolean {
  return book.some(({ base, standard }) => (standard.price[name] ?? base[name] ?? 0n) > 0n);
}

/** By the operator's price at this target, else by the official price. */
function ownCost(exchange: Exchange, usage: Usage, { at, services }: { at: number; services: Services }) {
  const [sold, to] = [exchange.find(model), exchange.find(target)];
  const chosen = sold?.targets.find((one) => one.provider === to?.provider && one.model === to.model);
  const book = chosen?.cost ?? sold?.cost ?? sold?.prices;
  const priced = book === undefined ? undefined : priceFor(book, at, usage, { services });
  return priced === undefined ? undefined : cost(usage, priced.price);
}

/** Vendors may quote it. */
function keyOf(exchange: Exchange): string | undefined {
  return exchange.find(target)?.key.reveal();
}

function isHtml(headers: Headers): boolean {
  return /^(?:text\/html|application\/xhtml)/i.test(headers['content-type'] ?? '');
}

function isEventStream(headers: Headers): boolean {
  return headers['content-type']?.startsWith('text/event-stream') ?? false;
}

/** Whether a body that is no JSON object begins as a stream of the protocol does. */
function beginsStream(body: Uint8Array, { framing }: AnsweringProtocol): boolean {
  const start = Buffer.from(body.subarray(0, 64)).toString('latin1').trimStart();
  return /^(?:(?:data|event|id|retry):|:)/.test(start) || (start !== '' && framing?.begins(start[0]!) === true);
}
