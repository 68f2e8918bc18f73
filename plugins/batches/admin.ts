/** The service `batchAdmin`: the batches of an account and of all, and checks of inputs before anything is ordered. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { BatchAdmin, BatchStory, BatchView } from '../common/domain/admin/batches.ts';
import type { UploadedFiles } from '../common/domain/stored-files.ts';
import { pageOf } from '../common/kit/paging.ts';
import type { AllBatchRows } from './all-rows.ts';
import type { Batch } from './batch.ts';
import { type InputLimits, readInput } from './input.ts';
import type { BatchRows } from './rows.ts';
import type { VendorRows } from './vendor/rows.ts';

export interface AdminTools {
  readonly rows: BatchRows;
  readonly allRows: AllBatchRows;
  readonly vendorRows: VendorRows;
  readonly files: () => UploadedFiles;
  /** Addresses that lines may call. */
  readonly endpoints: readonly string[];
  readonly limits: InputLimits;
  readonly wake: () => void;
}

/** The most checks at once in a process: each reads a whole file. */
const checksAtOnce = 2;

export function openBatchAdmin(tools: AdminTools): BatchAdmin {
  const { rows, allRows, wake } = tools;
  return {
    listAll: (filter, page) => allRows.list(filter, page),
    findAny: (id) => storyOf(tools, id),
    async list(accountId, page) {
      return pageOf(
        await rows.list(accountId, undefined, { ...page, after: page.after }),
        page,
        ({ id }) => id,
        viewOf,
      );
    },
    async find(accountId, id) {
      const batch = await rows.find(accountId, id);
      return batch && viewOf(batch);
    },
    async cancel(accountId, id) {
      if ((await rows.find(accountId, id)) === undefined)
        throw new GatewayError('not_found', 'There is no such batch.', { shouldRetry: false });
      await rows.cancel(accountId, id);
      wake();
    },
    check: checker(tools),
  };
}

function checker({ files, endpoints, limits }: AdminTools): BatchAdmin['check'] {
  let checks = 0;
  return async (accountId, fileId, endpoint) => {
    if (!endpoints.includes(endpoint))
      throw new GatewayError('invalid_request', `The endpoint must be one of: ${endpoints.join(', ')}.`, {
        field: 'endpoint',
        shouldRetry: false,
      });
    if (checks >= checksAtOnce)
      throw new GatewayError('overloaded', 'Other files are being checked at the moment.', { retryAfterMs: 2_000 });
    checks += 1;
    try {
      const opened = await files().open(accountId, fileId);
      if (opened === undefined)
        throw new GatewayError('not_found', 'There is no such file.', { field: 'file', shouldRetry: false });
      try {
        const { total, errors } = await readInput(opened.body, endpoint, limits, async () => {});
        return { lines: total, errors };
      } finally {
        opened.close();
      }
    } finally {
      checks -= 1;
    }
  };
}

async function storyOf({ rows, allRows, vendorRows }: AdminTools, id: string): Promise<BatchStory | undefined> {
  const accountId = await allRows.accountOf(id);
  if (accountId === undefined) return undefined;
  const [batch, found] = await Promise.all([rows.find(accountId, id), vendorRows.find(id)]);
  if (batch === undefined) return undefined;
  if (found === undefined) return { accountId, batch: viewOf(batch), vendor: undefined };
  const { results, sent: _sent, fileId: _fileId, ...vendor } = found;
  return { accountId, batch: viewOf(batch), vendor: { ...vendor, result: results?.ended } };
}

function viewOf(batch: Batch): BatchView {
  const { id, keyId, endpoint, state, outcome, total, counts, cost, held, errors, inputFile } = batch;
  const { createdAt, endedAt, cancelAt, expiresAt } = batch;
  // The id of an output file is set before the file exists.
  const [outputFile, errorFile] = state === 'ended' ? [batch.outputFile, batch.errorFile] : [];
  return {
    id,
    keyId,
    endpoint,
    state,
    outcome,
    total,
    counts,
    cost,
    held,
    errors,
    inputFile,
    outputFile,
    errorFile,
    createdAt,
    endedAt,
    cancelAt,
    expiresAt,
  };
}
