/** The response of a relayed call: an error becomes a refusal, a success passes byte for byte through a usage meter. */

import type { Exchange } from '../../../core/contract/contract.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import { isObject, tryParseBytes } from '../../../core/json/json.ts';
import { droppedHeader } from '../../common/canonical/dropped-parameters.ts';
import { type Call, spendGuard, type UsageReport, usageReport } from '../../common/domain/calls.ts';
import { model } from '../../common/domain/models.ts';
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

/**
 * The answer for the client, at once where its body is whole; its usage report is set on the exchange. Throws or rejects with an
 * UpstreamRefusal for a response that is no answer of the protocol, as long as nothing was sent to the client. Error bodies are
 * read up to the bound for forwarded bodies.
 */
export function relayAnswer(
  exchange: Exchange,
  opened: Answered,
  prepared: Pick<Prepared, 'dropped' | 'withholdUsage'>,
  answer: Answer,
  tools: AnswerTools,
  hooks: RelayHooks = {},
): Answer | Promise<Answer> {
  if (answer.status >= 300 || isHtml(answer.headers)) return refuse(exchange, opened, answer, tools);
  if (opened.call.stream) return relayStream(exchange, opened, prepared, answer, tools, hooks);
  const { body } = answer;
  if (hooks.otherForm !== undefined && isEventStream(answer.headers))
    return relayStream(exchange, opened, prepared, answer, tools, hooks);
  if (isWhole(body)) return relayWhole(exchange, opened, prepared, answer, asBytes(body), tools, hooks);
  return wholeBody(body, Number.POSITIVE_INFINITY).then((bytes) =>
    relayWhole(exchange, opened, prepared, answer, bytes, tools, hooks),
  );
}

function withDropped({ dropped }: Pick<Prepared, 'dropped'>, relayed: Answer): Answer {
  if (dropped.length > 0) relayed.headers['x-gateway-dropped'] = droppedHeader(dropped);
  return relayed;
}

async function refuse(
  exchange: Exchange,
  opened: Answered,
  { status, headers, body }: Answer,
  tools: Pick<Tools, 'clock'>,
): Promise<never> {
  if (status < 300) {
    if (!isWhole(body)) await body[Symbol.asyncIterator]().return?.();
    throw notAnAnswer('a page came instead of an answer', false);
  }
  const bytes = readable(await wholeBody(body, maxScrubbedBytes), headers, opened.protocol);
  const refusal = classify(status, headers, bytes, tools.clock.now(), keyOf(exchange));
  if (refusal.hasUsage) setUsage(exchange, opened, bytes, headers, tools);
  throw refusal;
}

/** The error body in a form that `classify` reads. */
function readable(body: Uint8Array, headers: Headers, { readError }: AnsweringProtocol): Uint8Array {
  const json = readError === undefined ? undefined : tryParseBytes(body);
  return isObject(json) ? Buffer.from(JSON.stringify(readError!(json, headers))) : body;
}

/** A refusal that reports usage was billed. */
function setUsage(
  exchange: Exchange,
  { protocol, call }: Answered,
  body: Uint8Array,
  headers: Headers,
  tools: Pick<Tools, 'clock'>,
): void {
  const json = tryParseBytes(body);
  if (!isObject(json)) return;
  const usageMeter = protocol.createUsageMeter(call, usageMeterOptions(exchange, tools, call, {}, headers, false));
  usageMeter.whole(json);
  exchange.set(usageReport, new LiveReport(usageMeter, call, exchange.find(model) ?? unknownSize));
}

function relayWhole(
  exchange: Exchange,
  opened: Answered,
  prepared: Pick<Prepared, 'dropped'>,
  answer: Answer,
  body: Uint8Array,
  tools: AnswerTools,
  hooks: RelayHooks,
): Answer | Promise<Answer> {
  const { protocol, call, reshape } = opened;
  const json = tryParseBytes(body);
  if (!isObject(json) && hooks.otherForm !== undefined && beginsStream(body, protocol))
    return relayStream(exchange, opened, prepared, { ...answer, body }, tools, hooks, false);
  if (!isObject(json)) throw notAnAnswer('the body is no JSON object', body[0] !== 0x3c);
  const usageMeter = protocol.createUsageMeter(
    call,
    usageMeterOptions(exchange, tools, call, hooks, answer.headers, false),
  );
  usageMeter.whole(json);
  const report = new LiveReport(usageMeter, call, exchange.find(model) ?? unknownSize);
  if (call.stream) requireAnswer(usageMeter);
  if (usageMeter.error !== undefined) {
    const { error } = usageMeter;
    const errorBody = error === json ? body : Buffer.from(JSON.stringify(error));
    const refusal = classifyBody(error, answer.headers, errorBody, tools.clock.now(), keyOf(exchange));
    if (refusal.hasUsage && call.billable) exchange.set(usageReport, report);
    throw refusal;
  }
  exchange.set(usageReport, call.billable ? report : nothingUsed);
  refuseKeptBack(exchange, usageMeter, report);
  reshape?.begin?.(report);
  const give = (converted: Uint8Array) => {
    hooks.ended?.(usageMeter);
    return withDropped(prepared, {
      status: answer.status,
      headers: { 'content-type': reshape?.wholeType ?? answer.headers['content-type'] ?? 'application/json' },
      body: converted,
    });
  };
  const converted = reshape === undefined ? body : reshape.whole(json, body);
  return converted instanceof Promise ? converted.then(give) : give(converted);
}

async function relayStream(
  exchange: Exchange,
  opened: Answered,
  prepared: Pick<Prepared, 'dropped' | 'withholdUsage'>,
  answer: Answer,
  tools: AnswerTools,
  hooks: RelayHooks = {},
  prefersDocument = !opened.call.stream,
): Promise<Answer> {
  const { protocol, call } = opened;
  const other = call.stream ? undefined : hooks.otherForm?.();
  const form = other ?? opened.reshape;
  // An answer in another form has ids of its own.
  const ended = other === undefined ? hooks.ended : undefined;
  const withholdUsage = prepared.withholdUsage ?? false;
  const options = usageMeterOptions(exchange, tools, call, hooks, answer.headers, withholdUsage);
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
  if (stream.document !== undefined)
    return relayDocument(exchange, opened, prepared, answer, stream.document, tools, hooks);
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
function relayDocument(
  exchange: Exchange,
  opened: Answered,
  prepared: Pick<Prepared, 'dropped'>,
  answer: Answer,
  document: Uint8Array,
  tools: AnswerTools,
  hooks: RelayHooks,
): Answer | Promise<Answer> {
  if (!opened.call.stream) return relayWhole(exchange, opened, prepared, answer, document, tools, hooks);
  const { otherForm, issued } = hooks;
  if (otherForm === undefined) throw notAnAnswer('a document came instead of a stream', true);
  return relayWhole(exchange, { ...opened, reshape: otherForm() }, prepared, answer, document, tools, { issued });
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
  exchange: Exchange,
  { clock }: Pick<Tools, 'clock'>,
  { services = {} }: Call,
  { issued, items }: RelayHooks,
  headers: Headers,
  withholdUsage: boolean,
): UsageMeterOptions {
  const costOf: CostOf = (usage) => ownCost(exchange, usage, { at: clock.now(), services });
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
