/** An account's sealed statements: its own for clients, and any for operators. */
import { z } from '@hono/zod-openapi';
import { statementForms } from '../../../common/domain/organizations/statements.ts';
import { projectAdmin, statementAdmin } from '../../services.ts';
import { knownAccount } from '../admin/accounts.ts';
import { type ConsoleServices, need, nothingHere, ownAccount } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, countInput, id, instant, pageOf, pageQuery, usd, writerOf } from '../schemas.ts';
import { streamOf } from '../stream.ts';
import { creditMonth, withDue } from './credit-lines.ts';

const mostNamed = 500;

const row = z
  .object({
    number: z.number().describe("Its place among the account's statements, from 1 and without gaps."),
    month: z.string().describe('2026-10, of this zone.'),
    zone: z.string(),
    from: instant,
    until: instant,
    opening: usd,
    closing: usd,
    digest: z.string().describe('SHA-256 of its file; each line has that of the line before too.'),
    previous: z.string().nullable().describe('The digest of the statement before; null: it is the first.'),
    sealedAt: instant,
  })
  .openapi('Statement');
const line = z.object({
  kind: z.string(),
  of: z.string().nullable().describe('The kind of a credit.'),
  project: z.string().nullable(),
  projectName: z.string().nullable().describe('Its name today; null: it has none.'),
  person: z.string().nullable(),
  personName: z.string().nullable(),
  model: z.string().nullable(),
  corrects: z
    .string()
    .nullable()
    .describe('The month that these belong to, where its statement was sealed without them.'),
  rows: z.number(),
  amount: usd,
  usd: z.string().describe('In whole cents: with the opening balance in cents these add up to the closing one.'),
});
const detail = row.extend({
  issuer: z.string(),
  rows: z.number(),
  openingUsd: z.string(),
  closingUsd: z.string(),
  lines: z.array(line),
  credit: z
    .array(creditMonth)
    .describe('Months of a credit line that were not paid when the month ended, as they were then; oldest first.'),
});

const number = countInput(1, 999_999);
const query = z.object({ format: z.enum(statementForms).default('json') });
const fileAnswer = { 200: { description: 'The file.', content: { 'text/csv': { schema: z.string() } } } };
const list = route('get', '/statements', 'Own sealed statements, newest first', answers(pageOf(row)), {
  query: pageQuery,
});
const find = route('get', '/statements/{number}', 'One of them, with what its movements come to', answers(detail), {
  params: z.object({ number }),
});
const file = route('get', '/statements/{number}/file', 'Its file, which proves itself as JSON lines', fileAnswer, {
  params: z.object({ number }),
  query,
});
const ofAccount = route('get', '/admin/accounts/{id}/statements', "An account's statements", answers(pageOf(row)), {
  params: z.object({ id }),
  query: pageQuery,
});
const findOfAccount = route('get', '/admin/accounts/{id}/statements/{number}', 'One of them', answers(detail), {
  params: z.object({ id, number }),
});
const fileOfAccount = route('get', '/admin/accounts/{id}/statements/{number}/file', 'Its file', fileAnswer, {
  params: z.object({ id, number }),
  query,
});

const rowJson = writerOf(row);
const detailJson = writerOf(detail);

export function statementRoutes(services: ConsoleServices) {
  const admin = () => need(services, statementAdmin);
  const known = async (accountId: string) => (await knownAccount(services, accountId)).id;
  return new Routes(services)
    .list(list, rowJson, async ({ c }, page) => admin().list(await ownAccount(services, c), page))
    .read(find, async ({ c, param }) => detailOf(services, await ownAccount(services, c), param.number))
    .file(file, async ({ c, param, query: { format } }) =>
      fileOf(services, { accountId: await ownAccount(services, c), number: param.number, format }),
    )
    .list(ofAccount, rowJson, async ({ param }, page) => admin().list(await known(param.id), page))
    .read(findOfAccount, async ({ param }) => detailOf(services, await known(param.id), param.number))
    .file(fileOfAccount, async ({ param, query: { format } }) =>
      fileOf(services, { accountId: await known(param.id), number: param.number, format }),
    );
}

async function found(services: ConsoleServices, accountId: string, wanted: number) {
  const statement = await need(services, statementAdmin).find(accountId, wanted);
  if (statement === undefined) throw nothingHere('statement');
  return statement;
}

async function detailOf(services: ConsoleServices, accountId: string, wanted: number) {
  const statement = await found(services, accountId, wanted);
  const idsOf = (name: 'project' | 'person') =>
    [...new Set(statement.lines.flatMap((each) => each[name] || []))].slice(0, mostNamed);
  const [projects, people] = await Promise.all([
    services.find(projectAdmin)?.namesOf(accountId, idsOf('project')),
    services.invitations.named(idsOf('person')),
  ]);
  const lines = statement.lines.map((each) => ({
    ...each,
    projectName: projects?.get(each.project ?? ''),
    personName: people.get(each.person ?? '')?.name,
  }));
  return detailJson({ ...statement, lines, credit: statement.credit.map(withDue) });
}

interface Wanted {
  readonly accountId: string;
  readonly number: number;
  readonly format: (typeof statementForms)[number];
}

async function fileOf(services: ConsoleServices, { accountId, number: wanted, format }: Wanted): Promise<Response> {
  const { month } = await found(services, accountId, wanted);
  const ending = format === 'json' ? 'jsonl' : format === 'csv' ? 'csv' : 'focus.csv';
  return new Response(streamOf(bytesOf(need(services, statementAdmin).file(accountId, wanted, format))), {
    headers: {
      'content-type': format === 'json' ? 'application/jsonl; charset=utf-8' : 'text/csv; charset=utf-8',
      'cache-control': 'no-store',
      'content-disposition': `attachment; filename="statement-${month}.${ending}"`,
    },
  });
}

async function* bytesOf(texts: AsyncIterable<string>) {
  const encoder = new TextEncoder();
  for await (const text of texts) yield encoder.encode(text);
}
