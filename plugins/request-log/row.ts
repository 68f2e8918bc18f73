/** What one exchange leaves in the request log. */
import type { Exchange, Outcome } from '../../core/contract.ts';
import { attempts, call, caller, dropped, story, usageReport } from '../../core/vocabulary.ts';
import { type KeptLine, keptStory, storable } from './story.ts';

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
  dropped: readonly string[] | undefined;
  story: readonly KeptLine[] | undefined;
}

const longestText = 200;
const mostDropped = 50;

/** Facts that nobody stated (a refused key, a model that does not exist) stay empty. */
export function rowOf(exchange: Exchange, outcome: Outcome): RequestRow {
  const asked = exchange.find(call);
  const who = exchange.find(caller);
  const report = exchange.find(usageReport);
  const tries = exchange.find(attempts) ?? [];
  const last = tries.at(-1);
  const left = exchange.find(dropped);
  return {
    id: exchange.id,
    received_at: new Date(exchange.receivedAt).toISOString(),
    operation: exchange.endpoint.operation,
    protocol: asked?.protocol,
    account_id: who?.accountId,
    key_id: who?.keyId,
    model: bounded(asked?.model),
    provider: last?.provider,
    upstream_model: last?.model,
    streamed: asked?.stream ?? false,
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
      left === undefined || left.length === 0
        ? undefined
        : left.slice(0, mostDropped).map((field) => storable(field, longestText)),
    story: keptStory(exchange.find(story), exchange.receivedAt),
  };
}

function bounded(text: string | undefined): string | undefined {
  return text === undefined ? undefined : storable(text, longestText);
}

function rounded(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.round(milliseconds * 100) / 100;
}
