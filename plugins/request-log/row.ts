/** What one exchange leaves in the request log. */
import type { Exchange, Outcome } from '../../core/contract.ts';
import { maskSecrets } from '../../core/secret.ts';
import { attempts, call, caller, usageReport } from '../../core/vocabulary.ts';

/** Columns of `requests`, in JSON types. */
export interface RequestRow {
  id: string;
  received_at: string;
  operation: string;
  protocol: string | undefined;
  account_id: string | undefined;
  key_id: string | undefined;
  model: string | undefined;
  provider: string | undefined;
  upstream_model: string | undefined;
  streamed: boolean;
  status: number;
  outcome: Outcome['kind'];
  error_kind: string | undefined;
  error_code: string | undefined;
  attempts: number;
  first_byte_ms: number | undefined;
  total_ms: number;
  bytes_in: number;
  bytes_out: number;
  usage: object | undefined;
  usage_estimated: boolean | undefined;
  finish: string | undefined;
  upstream_id: string | undefined;
}

const longestText = 200;

/** Facts that nobody stated (a refused key, a model that does not exist) stay empty. */
export function rowOf(exchange: Exchange, outcome: Outcome): RequestRow {
  const asked = exchange.find(call);
  const who = exchange.find(caller);
  const report = exchange.find(usageReport);
  const tries = exchange.find(attempts) ?? [];
  const last = tries.at(-1);
  return {
    id: exchange.id,
    received_at: new Date(exchange.receivedAt).toISOString(),
    operation: exchange.endpoint.operation,
    protocol: asked?.protocol,
    account_id: who?.accountId,
    key_id: who?.keyId,
    model: storable(asked?.model),
    provider: last?.provider,
    upstream_model: last?.model,
    streamed: asked?.stream ?? false,
    status: outcome.status,
    outcome: outcome.kind,
    error_kind: outcome.error?.kind,
    error_code: storable(outcome.error?.code),
    attempts: tries.length,
    first_byte_ms: rounded(outcome.firstByteMs),
    total_ms: rounded(outcome.totalMs)!,
    bytes_in: exchange.request.bodyBytes,
    bytes_out: outcome.bytesOut,
    usage: report?.usage,
    usage_estimated: report?.estimated,
    finish: storable(report?.finish),
    upstream_id: storable(report?.upstreamId),
  };
}

/**
 * A text from outside, bounded, masked (a client may have put its key where the model belongs), and without what a JSON
 * string may hold and a database's text may not: one such row would keep all others out.
 */
function storable(text: string | undefined): string | undefined {
  return text === undefined
    ? undefined
    : maskSecrets(text.slice(0, longestText)).toWellFormed().replaceAll('\0', '\ufffd');
}

function rounded(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.round(milliseconds * 100) / 100;
}
