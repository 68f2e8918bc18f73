/** Uploaded files of all accounts. Their bytes are not shown: they are clients' content. */
import { z } from '@hono/zod-openapi';
import { fileAdmin } from '../../services.ts';
import { fileRow } from '../files/files.ts';
import { type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, pageOf, pageQuery, reasonInput, takes, writerOf } from '../schemas.ts';

const operatorFileRow = fileRow.extend({ accountId: z.string(), mediaType: z.string() }).openapi('OperatorFile');
const params = z.object({ id });

const list = route(
  'get',
  '/admin/files',
  'The uploaded files of all accounts, newest first',
  answers(pageOf(operatorFileRow)),
  {
    query: pageQuery.extend({ accountId: id.optional(), purpose: id.optional() }),
  },
);
const one = route(
  'get',
  '/admin/files/{id}',
  'One uploaded file, with the space that its account uses',
  answers(
    operatorFileRow.extend({
      accountBytes: z.number().describe('Of all files of its account in the store, generated ones among them.'),
    }),
  ),
  { params },
);
const remove = route('delete', '/admin/files/{id}', 'Delete a file of an account', answers(done), {
  params,
  body: takes(z.strictObject({ reason: reasonInput })),
});

export function operatorFileRoutes(services: ConsoleServices) {
  const files = () => need(services, fileAdmin);
  return new Routes(services)
    .list(list, operatorFileJson, ({ query: { accountId, purpose } }, page) =>
      files().list({ accountId, purpose }, page),
    )
    .read(one, async ({ param }) => {
      const file = await files().find(param.id);
      if (file === undefined) throw nothingHere('file');
      return { ...operatorFileJson(file), accountBytes: await files().storedBytes(file.accountId) };
    })
    .action(remove, async ({ param: { id: subject }, json: { reason } }) => {
      const accountId = (await files().find(subject))?.accountId;
      const run = async () => {
        if (!(await files().remove(subject))) throw nothingHere('file');
      };
      return { action: 'file.delete', subject, reason, accountId, run };
    });
}

const operatorFileJson = writerOf(operatorFileRow);
