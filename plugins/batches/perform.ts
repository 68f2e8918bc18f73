/** Makes one line of a batch: a request of its own through the gateway's whole chain, at most once. */
import type { DirectAnswer, Exchange, Host } from '../../core/contract/contract.ts';
import { GatewayError, isPassing } from '../../core/contract/errors.ts';
import { type Caller, caller, keyring } from '../common/domain/accounts.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { batchLine, keyedCalls, spendGuard } from '../common/domain/calls.ts';
import { type Money, zero } from '../common/domain/money.ts';
import { type Placement, placementOf } from '../common/domain/organizations/placement.ts';
import { plans } from '../common/domain/plans.ts';
import { renderError } from '../common/kit/dialects.ts';
import { orderTrace, readTraceParent } from '../common/wire/trace.ts';
import type { Batch, LineAnswer, TakenLine } from './batch.ts';
import { type LineRequest, requestIn } from './input.ts';

/** `laterMs`: nothing was begun, and a later try may succeed. */
export type Performed = LineAnswer | { readonly laterMs: number };

const usualPauseMs = 5_000;
/** Money and limits come back slowly. */
const longPauseMs = 60_000;
/** Keys of calls are trusted until shortly before they are forgotten. */
const marginMs = 600_000;

/** `text`: the line of the input; undefined: its file is gone. */
export async function performLine(
  host: Host,
  batch: Batch,
  line: TakenLine,
  text: string | undefined,
  mostBytes: number,
): Promise<Performed> {
  const request = text === undefined ? undefined : requestIn(text, batch.endpoint);
  if (request === undefined || 'code' in request)
    return refused(batch, new GatewayError('invalid_request', 'The input file is not there any more.'));
  if (line.sentAgoMs !== undefined && !runsOnce(host, line.sentAgoMs))
    return { ...refused(batch, unknownOutcome()), cost: undefined };
  let made: Exchange | undefined;
  try {
    const known = await callerFor(host, batch);
    const answer = await host.perform({
      ...requestOf(batch, request),
      headers: {
        ...headersOf(batch),
        // 128 random bits: no client has chosen it.
        'idempotency-key': `${batch.id} line ${line.number}`,
      },
      prepare(exchange) {
        made = exchange;
        exchange.set(caller, known);
        exchange.set(batchLine, true);
        linkTo(exchange, batch);
      },
    });
    const performed = await lineAnswer(batch, answer, mostBytes);
    const laterMs = laterMsOf(answer);
    if (laterMs !== undefined && performed.status === answer.status) return { laterMs };
    return { ...performed, cost: await costOf(host, batch, answer, made) };
  } catch (error) {
    if (isPassing(error)) return { laterMs: usualPauseMs };
    if (error instanceof GatewayError)
      return isLater(error.status, {}) ? { laterMs: usualPauseMs } : refused(batch, error);
    throw error;
  }
}

/** The span of a line is linked to that of the order. */
export function linkTo(exchange: Exchange, { trace }: Pick<Batch, 'trace'>): void {
  const of = readTraceParent(trace);
  if (of !== undefined) exchange.set(orderTrace, of);
}

/** A line as a request of its own, without its headers. */
export function requestOf(
  { endpoint, remoteAddress }: Pick<Batch, 'endpoint' | 'remoteAddress'>,
  { body }: LineRequest,
) {
  return { method: 'POST', path: endpoint, body: Buffer.from(JSON.stringify(body)), remoteAddress } as const;
}

export const headersOf = ({ headers }: Pick<Batch, 'headers'>) => ({ ...headers, 'content-type': 'application/json' });

/** The charge of this line: of the request that just ended, or by the ledger of the earlier one that is replayed. */
async function costOf(
  host: Host,
  { accountId }: Batch,
  { headers }: DirectAnswer,
  made: Exchange | undefined,
): Promise<Money | undefined> {
  const before = headers['x-original-request-id'];
  if (before === undefined) return made?.find(spendGuard)?.charged?.()?.cost ?? zero;
  return (await host.find(ledgerQueries)?.charge(before, accountId))?.cost;
}

/** Whether a second request of a line that may have been sent does not run again. */
function runsOnce(host: Host, sentAgoMs: number): boolean {
  const keyed = host.find(keyedCalls);
  return keyed !== undefined && sentAgoMs + marginMs < keyed.keepMs;
}

/** The line's result of an answer, read to its end. */
export async function lineAnswer(
  batch: Pick<Batch, 'dialect'>,
  answer: DirectAnswer,
  mostBytes: number,
): Promise<LineAnswer> {
  const { status, headers } = answer;
  // A replayed answer was charged under the id of the first request.
  const requestId = headers['x-original-request-id'] ?? headers['x-request-id'];
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    // Read to its end even if it is too long: it is paid by its true usage.
    for await (const chunk of answer.body) {
      bytes += chunk.length;
      if (bytes <= mostBytes) chunks.push(chunk);
    }
    await answer.ended;
  } catch (error) {
    return { ...refused(batch, brokenAnswer(error)), requestId };
  }
  if (bytes > mostBytes) return { ...refused(batch, tooLong(mostBytes)), requestId };
  const text = Buffer.concat(chunks, bytes).toString('utf8');
  return { result: status < 400 ? 'succeeded' : 'errored', status, requestId, answer: text, cost: undefined };
}

/** How long a refusal lasts that time or money mends; undefined: it is an end. */
export function laterMsOf({ status, headers }: DirectAnswer): number | undefined {
  return isLater(status, headers) ? pauseOf(status, headers) : undefined;
}

/** Refusals before anything was sent, that time or money mends. */
function isLater(status: number, headers: Readonly<Record<string, string>>): boolean {
  if (status === 402) return true;
  if (headers['x-should-retry'] === 'false') return false;
  // 409: the same line runs in a process that has lost the batch.
  return status === 409 || status === 429 || status === 503;
}

function pauseOf(status: number, headers: Readonly<Record<string, string>>): number {
  if (status === 402) return longPauseMs;
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  if (!Number.isFinite(seconds)) return usualPauseMs;
  return Math.min(Math.max(seconds * 1000, 1_000), longPauseMs);
}

/** The result of a line that the gateway refuses. */
export function refused(batch: Pick<Batch, 'dialect'>, error: GatewayError): LineAnswer {
  const { body } = renderError(error, batch.dialect, '');
  return { result: 'errored', status: error.status, requestId: undefined, answer: body as string, cost: zero };
}

/** Whether nothing of its account is to be kept, which began after the batch was ordered. */
export async function isKeptNoMore(host: Host, batch: Batch): Promise<boolean> {
  const known = await knownTo(host, batch).catch(() => undefined);
  return known?.retention === 'none';
}

/** Where its lines may be processed. Its vendor's batch is ordered there, or its lines are made as calls. */
export async function placementFor(host: Host, batch: Batch): Promise<Placement | undefined> {
  const known = await knownTo(host, batch).catch((error: unknown) => {
    if (isPassing(error)) throw error;
    return undefined;
  });
  if (known === undefined) return undefined;
  const { plan, planEndsAt = Number.POSITIVE_INFINITY } = known;
  const offers = host.find(plans);
  return placementOf(known, offers?.terms(planEndsAt <= host.clock.now() ? offers.default : plan));
}

const knownTo = (host: Host, { keyId, remoteAddress, headers }: Batch) =>
  host.get(keyring).callerOf(keyId, remoteAddress, headers);

async function callerFor(host: Host, batch: Batch): Promise<Caller> {
  const known = await knownTo(host, batch);
  if (known.retention === 'none') throw nothingKept();
  return known;
}

/** The batch was ordered before nothing of its account was to be kept. */
function nothingKept(): GatewayError {
  const message = 'Nothing of the calls of this account is kept any more (retention "none").';
  return new GatewayError('forbidden', message, { code: 'retention_none', shouldRetry: false });
}

export function unknownOutcome(): GatewayError {
  const message = 'This request may have been made, and its answer was lost; it was not made again.';
  return new GatewayError('internal', message, { code: 'outcome_unknown', shouldRetry: false });
}

function brokenAnswer(cause: unknown): GatewayError {
  return new GatewayError('upstream_failed', 'The answer broke off.', { shouldRetry: false, cause });
}

function tooLong(mostBytes: number): GatewayError {
  return new GatewayError('upstream_failed', `The answer is larger than ${mostBytes} bytes.`, { shouldRetry: false });
}
