/** A client's batches: listed, checked before they are ordered, and cancelled. They are ordered at `/v1/batches` with a key. */
import { z } from '@hono/zod-openapi';
import type { BatchView } from '../../../common/domain/admin/batches.ts';
import { batchAdmin } from '../../services.ts';
import { type ConsoleServices, need, nothingHere, ownAccount } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, instant, pageOf, pageQuery, takes, usd, writerOf } from '../schemas.ts';

const fault = z.object({
  line: z.number().nullable().describe('null: the file as a whole.'),
  code: z.string(),
  message: z.string(),
  field: z.string().nullable(),
});
export const batchRow = z
  .object({
    id: z.string(),
    keyId: z.string(),
    endpoint: z.string(),
    state: z.enum(['validating', 'running', 'finishing', 'ended']),
    outcome: z.enum(['completed', 'failed', 'cancelled', 'expired']).nullable().describe('null: it has not ended.'),
    total: z.number().describe('Lines; 0 until the input was read.'),
    succeeded: z.number(),
    errored: z.number(),
    cancelled: z.number(),
    expired: z.number(),
    cost: usd.nullable().describe('Of the lines that were made so far; null: not known of all of them.'),
    held: usd.describe('Set aside for lines that a vendor makes as a batch of its own.'),
    errors: z.array(fault).describe('Faults of its input.'),
    inputFile: z.string(),
    outputFile: z.string().nullable(),
    errorFile: z.string().nullable(),
    createdAt: instant,
    endedAt: instant.nullable(),
    cancelAt: instant.nullable().describe('When it was cancelled; lines that ran then are finished.'),
    expiresAt: instant.describe('Lines that were not begun by then are given up.'),
  })
  .openapi('Batch');
const params = z.object({ id });

const list = route('get', '/batches', 'Own batches, the newest first', answers(pageOf(batchRow)), { query: pageQuery });
const one = route('get', '/batches/{id}', 'One own batch', answers(batchRow), { params });
const check = route(
  'post',
  '/batches/check',
  'Check each line of an uploaded file; nothing is started',
  answers(z.object({ lines: z.number(), errors: z.array(fault).describe('At most 100.') })),
  { body: takes(z.strictObject({ file: id, endpoint: id })) },
);
const cancel = route('post', '/batches/{id}/cancel', 'Cancel an own batch', answers(done), { params });

export function batchRoutes(services: ConsoleServices) {
  const batches = () => need(services, batchAdmin);
  return new Routes(services)
    .list(list, batchJson, async ({ c }, page) => batches().list(await ownAccount(services, c), page))
    .read(one, async ({ param, c }) => {
      const batch = await batches().find(await ownAccount(services, c), param.id);
      if (batch === undefined) throw nothingHere('batch');
      return batchJson(batch);
    })
    .read(check, async ({ json: { file, endpoint }, c }) => {
      const { lines, errors } = await batches().check(await ownAccount(services, c), file, endpoint);
      return { lines, errors: errors.map(faultJson) };
    })
    .action(cancel, async ({ param: { id: subject }, c }) => {
      const accountId = await ownAccount(services, c);
      return { action: 'batch.cancel', subject, run: () => batches().cancel(accountId, subject) };
    });
}

const faultJson = ({ line, code, message, param }: BatchView['errors'][number]): z.infer<typeof fault> => ({
  line,
  code,
  message,
  field: param,
});

const writeBatch = writerOf(batchRow);
export const batchJson = (view: BatchView) =>
  writeBatch({ ...view, ...view.counts, errors: view.errors.map(faultJson) });
