/** A client's uploaded files: listed, downloaded and deleted. Uploads go to `/v1/files` with a key, as programs send them. */
import { z } from '@hono/zod-openapi';
import { uploadedFiles } from '../../services.ts';
import { type ConsoleServices, need, nothingHere, ownAccount } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, instant, pageOf, pageQuery, pageRequest, writerOf } from '../schemas.ts';
import { streamOf } from '../stream.ts';

export const fileRow = z
  .object({
    id: z.string(),
    name: z.string(),
    purpose: z.string(),
    bytes: z.number(),
    createdAt: instant,
    expiresAt: instant.describe('From then on it is gone.'),
  })
  .openapi('File');
const params = z.object({ id });

const list = route('get', '/files', 'Own files, the newest first', answers(pageOf(fileRow)), {
  query: pageQuery.extend({ purpose: id.optional() }),
});
const content = route(
  'get',
  '/files/{id}/content',
  'Download an own file',
  { 200: { description: 'The file.', content: { 'application/octet-stream': { schema: z.string() } } } },
  { params },
);
const remove = route('delete', '/files/{id}', 'Delete an own file', answers(done), { params });

export function fileRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(list, async ({ query, c }) => {
      const { limit, after } = pageRequest(query);
      const accountId = await ownAccount(services, c);
      const wanted = { purpose: query.purpose, order: 'desc', limit, after } as const;
      const { files, more } = await need(services, uploadedFiles).list(accountId, wanted);
      return { rows: files.map(fileJson), next: more ? files.at(-1)!.id : null };
    })
    .file(content, async ({ param, c }) => {
      const accountId = await ownAccount(services, c);
      const { status, headers, body } = await need(services, uploadedFiles).answer(accountId, param.id, c.env.exchange);
      const isWhole = typeof body === 'string' || body instanceof Uint8Array;
      const sent = isWhole ? Buffer.from(body) : streamOf(body);
      return new Response(status === 304 ? null : sent, { status, headers: headers as Record<string, string> });
    })
    .action(remove, async ({ param: { id: subject }, c }) => {
      const accountId = await ownAccount(services, c);
      const run = async () => {
        if (!(await need(services, uploadedFiles).remove(accountId, subject))) throw nothingHere('file');
      };
      return { action: 'file.delete', subject, run };
    });
}

const fileJson = writerOf(fileRow);
