/** Batches in the form of Google's clients: operations with the results in them, or the name of their file. */
import type { JsonObject } from '../../../core/json/json.ts';
import { type Batch, modelInEndpoint } from '../batch.ts';

const types = 'type.googleapis.com/google.ai.generativelanguage.v1main';

/** `output`: of one that has ended and has results. */
export function googleBatch(batch: Batch, output: object | undefined): JsonObject {
  const { state, outcome, errors } = batch;
  const operation = { name: nameOf(batch), metadata: metadataOf(batch, output) };
  if (state !== 'ended') return operation;
  if (outcome === 'failed') {
    const { line, message = 'The batch failed.' } = errors[0] ?? {};
    return {
      ...operation,
      done: true,
      error: { code: 3, message: line == null ? message : `Line ${line}: ${message}` },
    };
  }
  const { response } = namesOf(batch);
  return { ...operation, done: true, response: { '@type': `${types}.${response}`, ...output } };
}

/** Types of the messages in an operation. */
function namesOf({ endpoint }: Batch) {
  return endpoint.endsWith(':embedContent')
    ? { metadata: 'EmbedContentBatch', response: 'AsyncBatchEmbedContentResponse' }
    : { metadata: 'GenerateContentBatch', response: 'BatchGenerateContentResponse' };
}

const nameOf = ({ id }: Batch) => `batches/${id}`;

function metadataOf(batch: Batch, output: object | undefined): object {
  const { state, total, counts, metadata, createdAt, startedAt, finishingAt, endedAt, cancelAt } = batch;
  const done = counts.succeeded + counts.errored + counts.cancelled + counts.expired;
  const times = [createdAt, startedAt ?? 0, finishingAt ?? 0, endedAt ?? 0, cancelAt ?? 0];
  return {
    '@type': `${types}.${namesOf(batch).metadata}`,
    model: `models/${modelInEndpoint(batch.endpoint) ?? ''}`,
    displayName: metadata?.['displayName'] ?? '',
    ...(output === undefined ? {} : { output }),
    createTime: iso(createdAt),
    ...(endedAt === undefined ? {} : { endTime: iso(endedAt) }),
    updateTime: iso(Math.max(...times)),
    batchStats: {
      requestCount: String(total),
      successfulRequestCount: String(counts.succeeded),
      failedRequestCount: String(done - counts.succeeded),
      pendingRequestCount: String(state === 'ended' ? 0 : Math.max(0, total - done)),
    },
    state: stateOf(batch),
    name: nameOf(batch),
  };
}

const outcomes = {
  completed: 'BATCH_STATE_SUCCEEDED',
  failed: 'BATCH_STATE_FAILED',
  cancelled: 'BATCH_STATE_CANCELLED',
  expired: 'BATCH_STATE_EXPIRED',
} as const;

function stateOf({ state, outcome }: Batch): string {
  if (outcome !== undefined) return outcomes[outcome];
  return state === 'validating' ? 'BATCH_STATE_PENDING' : 'BATCH_STATE_RUNNING';
}

const iso = (at: number) => new Date(at).toISOString();
