/**
 * The two exchanges of a line that a vendor's batch makes. Both pass the whole chain. At the centre, the first takes the vendor's
 * request and sets money aside instead of sending it; the second gives the answer of the vendor's results.
 */
import { defineContextKey, type Exchange, type Host, upstreamRequest } from '../../../core/contract/contract.ts';
import { GatewayError, isPassing } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { type JsonObject, tryParse } from '../../../core/json/json.ts';
import { type Caller, caller, keyring } from '../../common/domain/accounts.ts';
import {
  type Attempt,
  attempts,
  batchLine,
  call,
  keptForAnswer,
  pinned,
  type UsageReport,
  unrecorded,
  usageReport,
  vendorBatch,
} from '../../common/domain/calls.ts';
import type { Orm } from '../../common/domain/database.ts';
import { type Authorization, authorization } from '../../common/domain/ledger.ts';
import { target } from '../../common/domain/upstreams.ts';
import type { Batch, LineAnswer } from '../batch.ts';
import type { LineRequest } from '../input.ts';
import { headersOf, laterMsOf, lineAnswer, linkTo, refused, requestOf } from '../perform.ts';
import type { PlacedLine, VendorBatch } from './rows.ts';

/** Takes the place of sending at the centre of a line's exchange. */
export const insteadOfSending = defineContextKey<(exchange: Exchange) => Promise<Answer>>('instead of sending');

/** `call`: this line cannot be in the vendor's batch. `laterMs`: nothing was done. */
type Placed = 'placed' | 'call' | { readonly refused: LineAnswer } | { readonly laterMs: number };

const pauseMs = 5_000;
const paymentRequired = 402;

interface PlaceTools {
  readonly mostBytes: number;
  /** Whether the vendor's batch has room for this request. */
  readonly fits: (request: string) => boolean;
  /** Writes the line in the transaction that sets its money aside. */
  readonly place: (
    orm: Orm,
    placing: { readonly requestId: string; readonly held: Authorization['amount'] } & Pick<
      PlacedLine,
      'request' | 'kept'
    >,
  ) => Promise<void>;
}

export async function placeLine(
  host: Host,
  batch: Batch,
  vendor: VendorBatch,
  request: LineRequest,
  { mostBytes, fits, place }: PlaceTools,
): Promise<Placed> {
  let end: 'placed' | 'call' | undefined;
  try {
    const known = await host.get(keyring).callerOf(batch.keyId, batch.remoteAddress, batch.headers);
    const answer = await host.perform({
      ...requestOf(batch, request),
      headers: headersOf(batch),
      prepare(exchange) {
        begin(exchange, batch, known, vendor, 'order');
        exchange.set(insteadOfSending, async (sending) => {
          const [money, text] = [sending.find(authorization), requestFor(sending, vendor)];
          const isFor = money !== undefined && text !== undefined && fits(text);
          if (isFor) {
            const kept = sending.find(keptForAnswer)?.sealed();
            await money.place((orm) => place(orm, { requestId: money.id, held: money.amount, request: text, kept }));
          }
          end = isFor ? 'placed' : 'call';
          exchange.set(unrecorded, true);
          throw new GatewayError('conflict', 'This line is not sent by itself.', { shouldRetry: false });
        });
      },
    });
    const read = await lineAnswer(batch, answer, mostBytes);
    if (end !== undefined) return end;
    // It may be made as soon as other lines have given back what they did not need.
    if (answer.status === paymentRequired) return 'call';
    const laterMs = laterMsOf(answer);
    return laterMs === undefined ? { refused: read } : { laterMs };
  } catch (error) {
    if (isPassing(error)) return { laterMs: pauseMs };
    if (error instanceof GatewayError) return { refused: refused(batch, error) };
    throw error;
  }
}

function begin(exchange: Exchange, batch: Batch, known: Caller, vendor: VendorBatch, stage: 'order' | 'answer'): void {
  linkTo(exchange, batch);
  const { provider, protocol, credential = '' } = vendor;
  exchange.set(caller, known);
  exchange.set(batchLine, true);
  exchange.set(vendorBatch, stage);
  exchange.set(pinned, { provider, protocol, credential });
}

/** The vendor's request on one line; undefined: it is none for the vendor's batch. */
function requestFor(exchange: Exchange, vendor: VendorBatch): string | undefined {
  const { provider, protocol, model, credential } = exchange.get(target);
  const requestedCall = exchange.get(call);
  const isOther = provider !== vendor.provider || model !== vendor.model || credential !== vendor.credential;
  if (isOther || protocol !== vendor.protocol || requestedCall.protocol !== protocol || requestedCall.stream)
    return undefined;
  // Services have prices of their own, and a batch is one.
  if (Object.keys(requestedCall.services ?? {}).length > 0) return undefined;
  const { body } = exchange.get(upstreamRequest);
  const parts = typeof body === 'string' ? [Buffer.from(body)] : body instanceof Uint8Array ? [body] : body;
  // A form that is read from the disk is none.
  if (!Array.isArray(parts)) return undefined;
  const text = Buffer.concat(parts)
    .toString('utf8')
    .replace(/[\r\n]+/g, ' ');
  const json = tryParse(text) as JsonObject | undefined;
  return json === undefined || json['stream'] === true ? undefined : text;
}

export interface Delivered {
  readonly answer: LineAnswer;
  readonly report: UsageReport | undefined;
  readonly attempts: readonly Attempt[];
}

/** `id`: of the line's authorization, which its row has. Throws where a later try may succeed. */
export async function deliverLine(
  host: Host,
  batch: Batch,
  vendor: VendorBatch,
  line: {
    readonly id: string;
    readonly request: LineRequest;
    readonly status: number;
    readonly body: JsonObject;
  } & Pick<PlacedLine, 'kept'>,
  mostBytes: number,
): Promise<Delivered> {
  const known = await callerFor(host, batch);
  let made: Exchange | undefined;
  let isGiven = false;
  const answer = await host.perform({
    ...requestOf(batch, line.request),
    id: line.id,
    headers: headersOf(batch),
    prepare(exchange) {
      made = exchange;
      begin(exchange, batch, known, vendor, 'answer');
      if (line.kept !== undefined) exchange.set(keptForAnswer, { sealed: () => line.kept });
      exchange.set(insteadOfSending, async () => {
        isGiven = true;
        const headers = { 'content-type': 'application/json' };
        return { status: line.status, headers, body: Buffer.from(JSON.stringify(line.body)) };
      });
    },
  });
  const read = await lineAnswer(batch, answer, mostBytes);
  if (!isGiven && laterMsOf(answer) !== undefined) throw new Error('a result cannot be read at the moment');
  const report = snapshotOf(made?.find(usageReport));
  const own = made?.find(attempts)?.at(-1);
  const isAnswered = isGiven && (own?.result === 'answered' || report !== undefined);
  const said = isGiven ? { status: own?.status, error: own?.error } : {};
  const attempt = { ...attemptAt(vendor, isGiven, isAnswered), ...said };
  return { answer: { ...read, requestId: line.id }, report, attempts: [attempt] };
}

/** What a vendor has made is delivered even if the key was revoked meanwhile. */
async function callerFor(host: Host, { keyId, accountId, remoteAddress, headers }: Batch): Promise<Caller> {
  try {
    return await host.get(keyring).callerOf(keyId, remoteAddress, headers);
  } catch (error) {
    if (isPassing(error)) throw error;
    return { accountId, keyId, plan: '', models: undefined };
  }
}

/** One that the gateway could not read may have cost something; one that the vendor refused has not. */
function attemptAt(vendor: VendorBatch, isGiven: boolean, isAnswered: boolean): Attempt {
  return { ...sentAttempt(vendor), result: isAnswered ? 'answered' : isGiven ? 'refused' : 'unknown' };
}

/** The line's part in the vendor's batch; what became of it is not known. */
export function sentAttempt({ provider, model, credential = '', protocol, orderedAt, sent }: VendorBatch): Attempt {
  const startedAt = orderedAt ?? sent?.at ?? 0;
  const unknown = { result: 'unknown', status: undefined, durationMs: undefined, error: undefined } as const;
  return { number: 1, provider, model, credential, protocol, startedAt, ...unknown };
}

/** Reports compute their members when they are read. */
function snapshotOf(report: UsageReport | undefined): UsageReport | undefined {
  if (report === undefined) return undefined;
  const { usage, estimated, terminal, upstreamId, finish, services, media } = report;
  return {
    ...{ usage, estimated, terminal, upstreamId, finish },
    ...(services === undefined ? {} : { services }),
    ...(media === undefined ? {} : { media }),
  };
}
