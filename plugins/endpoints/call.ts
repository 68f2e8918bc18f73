/** One attempt of a call: the request for its target, and the answer with its usage. */
import { type Exchange, type Next, upstreamRequest } from '../../core/contract/contract.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { Answer, Headers } from '../../core/contract/message.ts';
import { UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { asBuffer, isObject, type JsonObject, tryParseBytes } from '../../core/json/json.ts';
import { applyEdits, findPlace } from '../../core/json/splice.ts';
import { dropped, type UsageReport, usageReport } from '../common/domain/calls.ts';
import { defineEvent, recordEvent, recordVendorWords } from '../common/domain/timeline.ts';
import type { Target } from '../common/domain/upstreams.ts';
import type { Usage } from '../common/domain/usage.ts';
import { maxScrubbedBytes, scrubBytes } from '../common/kit/scrub.ts';
import { classify, classifyBody, classifyFrame, notAnAnswer } from '../common/kit/upstream-errors.ts';
import { buildUpstreamRequest } from '../common/kit/upstream-request.ts';
import { asBytes, isWhole, wholeBody } from '../common/wire/answer-body.ts';
import type { AnswerContext, AnswerReader, Opened, Prepared } from './description.ts';
import { foreignRefusal } from './errors.ts';
import { completed, pricedIn, requestedUsage } from './metering.ts';
import { MeteredStream } from './stream.ts';

const attemptEvent = defineEvent('endpoints.form', (to: string, converted: boolean, left: string | null) => {
  const form = `${converted ? 'converted to' : 'relayed as'} ${to}`;
  return left === null ? form : `${form}; left out: ${left}`;
});

/** Tools of calls. */
export interface CallTools {
  readonly clock: Clock;
  /** The gateway's own error bodies, if it has any. */
  shape(): AnswerContext['shapeOf'];
  /** Relayed answers name the model as the client did. */
  namesRequested(): boolean;
}

/** The client's answer. Throws an UpstreamRefusal, or a GatewayError for what this target cannot serve. */
export async function makeCall(
  exchange: Exchange,
  opened: Opened,
  target: Target,
  { clock, shape, namesRequested }: CallTools,
  next: Next,
): Promise<Answer> {
  const prepared = opened.prepare(target);
  const left = prepared.dropped;
  exchange.set(dropped, left);
  const leftOut = left.length === 0 ? null : left.join(', ');
  recordEvent(exchange, clock.now(), attemptEvent, [target.protocol, prepared.converted, leftOut]);
  exchange.set(upstreamRequest, requestFor(exchange, prepared, target));
  const answer = await next();
  const failed = (event: JsonObject) => {
    const now = clock.now();
    recordVendorWords(exchange, now, classifyFrame(event, now, target.key.reveal()).vendor);
  };
  const masked = (bytes: Uint8Array) => scrubBytes(bytes, target.key.reveal());
  const context = { call: opened.call, exchange, shapeOf: shape(), failed, masked };
  const read = { context, opened, prepared, target, clock, namesRequested: namesRequested() && !prepared.converted };
  try {
    if (answer.status >= 300 || isPage(answer.headers)) return await refuse(read, answer);
    const { answer: reader } = prepared;
    const given = reader.form === 'whole' ? await readWhole(read, reader, answer) : openStream(read, reader, answer);
    if (left.length > 0) given.headers['x-gateway-dropped'] = droppedHeader(left);
    return given;
  } catch (error) {
    throw prepared.converted && error instanceof UpstreamRefusal ? foreignRefusal(error) : error;
  }
}

/** Tools for the reading of an answer. */
interface Read {
  readonly context: AnswerContext;
  readonly opened: Opened;
  readonly prepared: Prepared;
  readonly target: Target;
  readonly clock: Clock;
  readonly namesRequested: boolean;
}

function requestFor({ request }: Exchange, prepared: Prepared, target: Target) {
  const { wire, path, body, contentType, accept, converted } = prepared;
  // Headers of the client have no meaning in another protocol.
  const headers: Headers = converted ? {} : { ...request.headers };
  if (contentType !== undefined) headers['content-type'] = contentType;
  if (accept !== undefined) headers['accept'] = accept;
  return buildUpstreamRequest(wire, { headers }, { path, body }, target, prepared.answer.form === 'stream');
}

async function readWhole(read: Read, reader: AnswerReader & { form: 'whole' }, answer: Answer): Promise<Answer> {
  const { context, opened, target, clock } = read;
  const { exchange } = context;
  const body = await wholeBody(answer.body, Number.POSITIVE_INFINITY);
  const error = errorIn(body);
  if (isObject(error?.['error']) && body.length <= maxScrubbedBytes)
    throw classifyBody(error!, answer.headers, body, clock.now(), target.key.reveal());
  const reading = await reader.read(body, context);
  const { usage, upstreamId, contentType = answer.headers['content-type'] ?? 'application/json' } = reading;
  const report = reportOf(exchange, opened, reading.seen, usage, upstreamId);
  exchange.set(usageReport, error === undefined ? report : { ...report, hasError: true });
  const given = reading.body ?? body;
  const named = read.namesRequested ? withModel(given, opened.call.model) : given;
  return { status: answer.status, headers: { 'content-type': contentType }, body: named };
}

/** With this name in the member `model`, or as it is where that is no name. */
function withModel(body: Answer['body'], name: string): Answer['body'] {
  if (!isWhole(body)) return body;
  const bytes = asBuffer(asBytes(body));
  if (!bytes.includes('"model"')) return body;
  try {
    const place = findPlace(bytes, ['model']);
    if (place === undefined || bytes[place.valueStart] !== quote) return body;
    return applyEdits(bytes, [{ start: place.valueStart, end: place.end, text: JSON.stringify(name) }]);
  } catch {
    return body;
  }
}

const quote = 0x22;

function reportOf(
  exchange: Exchange,
  { call }: Opened,
  seen: Usage = {},
  reported?: Usage,
  upstreamId?: string,
): UsageReport {
  const measured = completed(reported, { ...requestedUsage(call), ...seen }, pricedIn(exchange));
  return { ...measured, terminal: true, upstreamId: storable(upstreamId), finish: undefined };
}

function openStream(read: Read, reader: AnswerReader & { form: 'stream' }, answer: Answer): Answer {
  const { context } = read;
  const contentType = answer.headers['content-type'] ?? 'application/octet-stream';
  const meter = reader.open(contentType, context);
  // Set before the body is pulled: a client may disconnect at any time.
  context.exchange.set(usageReport, meter.report);
  return {
    status: answer.status,
    headers: { 'content-type': contentType },
    body: new MeteredStream(answer.body, meter),
    failed: (error) => meter.end(error),
  };
}

async function refuse({ context: { exchange }, opened, target, clock }: Read, answer: Answer): Promise<never> {
  const { status, headers, body } = answer;
  if (status < 300) {
    if (!isWhole(body)) await body[Symbol.asyncIterator]().return?.();
    throw notAnAnswer('a page came instead of an answer', false);
  }
  const bytes = await wholeBody(body, maxScrubbedBytes);
  const refusal = classify(status, headers, bytes, clock.now(), target.key.reveal());
  if (refusal.hasUsage) exchange.set(usageReport, reportOf(exchange, opened));
  throw refusal;
}

function errorIn(body: Uint8Array): Record<string, unknown> | undefined {
  // Most answers begin with other members.
  if (!asBuffer(body).includes('"error"')) return undefined;
  const json = tryParseBytes(body);
  return isObject(json) && json['error'] ? json : undefined;
}

function isPage(headers: Headers): boolean {
  return /^(?:text\/html|application\/xhtml)/i.test(headers['content-type'] ?? '');
}

const longestId = 500;

function storable(text: string | undefined): string | undefined {
  return text?.slice(0, longestId).toWellFormed().replaceAll('\0', '\ufffd');
}

/** Names come from clients; a header takes visible ASCII alone. */
function droppedHeader(names: readonly string[]): string {
  return names.map((name) => name.replace(/[^\x20-\x7e]|,/g, '?').slice(0, 100)).join(', ');
}
