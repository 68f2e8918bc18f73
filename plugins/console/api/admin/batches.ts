/** Batches of all accounts. */
import { z } from '@hono/zod-openapi';
import { type BatchStory, batchEndpoints, batchStates, type OwnedBatch } from '../../../common/domain/admin/batches.ts';
import { batchAdmin } from '../../services.ts';
import { batchJson, batchRow } from '../files/batches.ts';
import { type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, instant, pageOf, pageQuery, reasonInput, takes, writerOf } from '../schemas.ts';

const { id: batchId, keyId, endpoint, state, outcome, total, cost } = batchRow.shape;
const { createdAt, endedAt, cancelAt, expiresAt } = batchRow.shape;
const count = z.number().nullable().describe('null until it has ended; one batch alone is counted before.');
const operatorBatchRow = z
  .object({
    ...{ id: batchId, accountId: z.string(), keyId, endpoint, state, outcome, total },
    ...{ succeeded: count, errored: count, cancelled: count, expired: count },
    cost: cost.describe('null: not known of all lines, or it has not ended.'),
    provider: z.string().nullable().describe('Makes the lines by its own batch API; null: they are made as calls.'),
    ...{ createdAt, endedAt, cancelAt, expiresAt },
  })
  .openapi('OperatorBatch');
const vendorBatch = z.object({
  provider: z.string(),
  model: z.string(),
  asked: z.string().describe("The client's name of the model."),
  protocol: z.string(),
  credential: z.string().nullable(),
  state: z.enum(['preparing', 'uploading', 'ordering', 'running', 'reading', 'ended']),
  lines: z.number().describe('0 until the order is made.'),
  vendorId: z.string().nullable().describe("The vendor's id of the batch."),
  orderedAt: instant.nullable(),
  cancelSent: z.boolean().describe('The vendor was asked to cancel it.'),
  result: z.enum(['completed', 'cancelled', 'expired']).nullable().describe('How the vendor ended it.'),
});
const batchStory = batchRow
  .extend({ accountId: z.string(), vendor: vendorBatch.nullable().describe('null: its lines are made as calls.') })
  .openapi('OperatorBatchStory');
const params = z.object({ id });

const list = route(
  'get',
  '/admin/batches',
  'The batches of all accounts, newest first',
  answers(pageOf(operatorBatchRow)),
  {
    query: pageQuery.extend({
      accountId: id.optional(),
      state: z.enum(batchStates).optional(),
      endpoint: z.enum(batchEndpoints).optional(),
    }),
  },
);
const one = route('get', '/admin/batches/{id}', 'One batch, with what a vendor makes of it', answers(batchStory), {
  params,
});
const cancel = route('post', '/admin/batches/{id}/cancel', 'Cancel a batch of an account', answers(done), {
  params,
  body: takes(z.strictObject({ reason: reasonInput })),
});

export function operatorBatchRoutes(services: ConsoleServices) {
  const batches = () => need(services, batchAdmin);
  const found = async (batch: string): Promise<BatchStory> => {
    const batchRow = await batches().findAny(batch);
    if (batchRow === undefined) throw nothingHere('batch');
    return batchRow;
  };
  return new Routes(services)
    .list(list, operatorBatchJson, ({ query: { accountId, state, endpoint } }, page) =>
      batches().listAll({ accountId, state, endpoint }, page),
    )
    .read(one, async ({ param }) => batchStoryJson(await found(param.id)))
    .action(cancel, async ({ param: { id: subject }, json: { reason } }) => {
      const accountId = (await batches().findAny(subject))?.accountId;
      const run = async () => batches().cancel((await found(subject)).accountId, subject);
      return { action: 'batch.cancel', subject, reason, accountId, run };
    });
}

const writeBatch = writerOf(operatorBatchRow);
const operatorBatchJson = ({ counts, ...view }: OwnedBatch) => writeBatch({ ...view, ...counts });

function batchStoryJson({ accountId, batch, vendor }: BatchStory): z.infer<typeof batchStory> {
  return { ...batchJson(batch), accountId, vendor: vendorJson(vendor) };
}

const vendorJson = writerOf(vendorBatch.nullable());
