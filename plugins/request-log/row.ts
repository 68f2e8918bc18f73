/** The request log's row of one exchange. */
import type { Exchange, Outcome } from '../../core/contract/contract.ts';
import { caller, tagsText } from '../common/domain/accounts.ts';
import type { RequestRow } from '../common/domain/call-facts.ts';
import { attempts, call, dropped, usageReport } from '../common/domain/calls.ts';
import { isDelivered, servedBy } from '../common/domain/ledger.ts';
import { trace } from '../common/wire/trace.ts';
import { storable } from './timeline.ts';

const longestText = 200;
const mostDropped = 50;

/** Columns without a context value (after a refused key, or for an unknown model) stay empty. */
export function rowOf(exchange: Exchange, outcome: Outcome): RequestRow {
  const requestedCall = exchange.find(call);
  const who = exchange.find(caller);
  const report = exchange.find(usageReport);
  const tries = exchange.find(attempts) ?? [];
  const served = exchange.find(servedBy);
  const isServed = served !== undefined && isDelivered(served, outcome.kind);
  // An answer without an attempt has no provider, even if attempts failed before.
  const last = isServed ? undefined : tries.at(-1);
  const droppedFields = exchange.find(dropped);
  return {
    request_id: exchange.id,
    received_at: timeText(exchange.receivedAt),
    operation: exchange.endpoint.operation,
    protocol: requestedCall?.protocol,
    account_id: who?.accountId,
    key_id: who?.keyId,
    person: who?.attribution?.person,
    project: who?.attribution?.project,
    model: bounded(requestedCall?.model),
    provider: isServed ? undefined : (last?.provider ?? requestedCall?.provider),
    upstream_model: last?.model,
    streamed: requestedCall?.stream ?? false,
    status: outcome.status,
    outcome: outcome.kind,
    error_kind: outcome.error?.kind,
    error_code: bounded(outcome.error?.code),
    attempts: tries.length,
    first_byte_ms: rounded(outcome.firstByteMs),
    total_ms: rounded(outcome.totalMs)!,
    bytes_in: exchange.request.bodyBytes,
    bytes_out: outcome.bytesOut,
    usage: report?.usage,
    usage_estimated: report?.estimated,
    finish: bounded(report?.finish),
    upstream_id: bounded(report?.upstreamId),
    dropped:
      droppedFields === undefined || droppedFields.length === 0
        ? undefined
        : droppedFields.slice(0, mostDropped).map((field) => storable(field, longestText)),
    trace_id: exchange.find(trace)?.traceId,
    tags: who?.tags && tagsText(who.tags),
  };
}

/** Requests of one turn of the event loop have the same time. */
let lastTime = Number.NaN;
let lastText = '';

function timeText(at: number): string {
  if (at !== lastTime) {
    lastTime = at;
    lastText = new Date(at).toISOString();
  }
  return lastText;
}

function bounded(text: string | undefined): string | undefined {
  return text === undefined ? undefined : storable(text, longestText);
}

function rounded(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.round(milliseconds * 100) / 100;
}
