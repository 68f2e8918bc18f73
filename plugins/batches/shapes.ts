/** Batches in the forms of both protocols. Pure. */
import type { Batch } from './batch.ts';

export function chatBatch(batch: Batch): object {
  const { state, outcome, counts, total, errors } = batch;
  const of = (wanted: Batch['outcome']) => (outcome === wanted ? seconds(batch.endedAt) : null);
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors:
      errors.length === 0
        ? null
        : { object: 'list', data: errors.map(({ code, message, param, line }) => ({ code, message, param, line })) },
    input_file_id: batch.inputFile,
    completion_window: '24h',
    status: chatStatus(batch),
    output_file_id: state === 'ended' ? (batch.outputFile ?? null) : null,
    error_file_id: state === 'ended' ? (batch.errorFile ?? null) : null,
    created_at: seconds(batch.createdAt),
    in_progress_at: seconds(batch.startedAt),
    expires_at: seconds(batch.expiresAt),
    finalizing_at: seconds(batch.finishingAt),
    completed_at: of('completed'),
    failed_at: of('failed'),
    expired_at: of('expired'),
    cancelling_at: seconds(batch.cancelAt),
    cancelled_at: of('cancelled'),
    request_counts: {
      total,
      completed: counts.succeeded,
      failed: counts.errored + (state === 'ended' ? counts.expired + counts.cancelled : 0),
    },
    ...(batch.usage === undefined ? {} : { usage: batch.usage }),
    metadata: batch.metadata ?? null,
  };
}

function chatStatus({ state, outcome, cancelAt }: Batch): string {
  if (outcome !== undefined) return outcome;
  if (cancelAt !== undefined) return 'cancelling';
  if (state === 'finishing') return 'finalizing';
  return state === 'validating' ? 'validating' : 'in_progress';
}

/** `origin`: where the client reaches the gateway, for the address of the results. */
export function messagesBatch(batch: Batch, origin: string): object {
  const { state, counts, total } = batch;
  const done = counts.succeeded + counts.errored + counts.cancelled + counts.expired;
  const ended = state === 'ended';
  const counted = (count: number) => (ended ? count : 0);
  return {
    id: batch.id,
    type: 'message_batch',
    processing_status: ended ? 'ended' : batch.cancelAt === undefined ? 'in_progress' : 'canceling',
    // The official counts stay at zero until the end.
    request_counts: {
      processing: ended ? 0 : total,
      succeeded: counted(counts.succeeded),
      errored: ended ? total - done + counts.errored : 0,
      canceled: counted(counts.cancelled),
      expired: counted(counts.expired),
    },
    created_at: iso(batch.createdAt),
    expires_at: iso(batch.expiresAt),
    ended_at: iso(batch.endedAt),
    cancel_initiated_at: iso(batch.cancelAt),
    archived_at: null,
    results_url: ended && batch.outputFile !== undefined ? `${origin}/v1/messages/batches/${batch.id}/results` : null,
  };
}

const seconds = (at: number | undefined) => (at === undefined ? null : Math.floor(at / 1000));
const iso = (at: number | undefined) => (at === undefined ? null : new Date(at).toISOString());
