/** Makes the rows that a gateway of this version leaves, of every kind, for `upgrade.test.ts` of later versions: `node tests/upgrade/make.ts FILE`. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { rowsOf } from '../../plugins/common/kit/sql.ts';
import { exportTo } from '../../plugins/storage/transfer/export.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { bookExpired, otherRows } from './other-rows.ts';

const file = process.argv[2];
assert.ok(file !== undefined, 'name the file');
assert.equal(process.env['TEST_DATABASE_URL'] ?? '', '', 'the rows are those of the embedded database');

async function run(gateway: TestGateway, name: string, values: Record<string, string>): Promise<unknown> {
  return (await gateway.gateway.commands.find((each) => each.name === name)!.run(values)).json;
}

function senderOf({ origin }: TestGateway, secret: string) {
  return async (path: string, body?: object | FormData, headers: Record<string, string> = {}, method?: string) => {
    const isForm = body instanceof FormData;
    const answer = await fetch(origin + path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        authorization: `Bearer ${secret}`,
        ...(isForm || body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    console.error(`${answer.status} ${path} ${text.slice(0, 120).replaceAll('\n', ' ')}`);
    return { status: answer.status, id: answer.headers.get('x-request-id') ?? '', body: parsed(text) };
  };
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

type Send = ReturnType<typeof senderOf>;

async function call(send: Send): Promise<void> {
  const messages = [{ role: 'user', content: 'Say one' }];
  for (const stream of [false, true]) await send('/v1/chat/completions', { model: 'gpt-5.4-mini', messages, stream });
  await send('/v1/chat/completions', { model: 'no-such-model', messages });
  await send('/v1/messages', { model: 'gpt-5.4-mini', messages, max_tokens: 20 }, { 'idempotency-key': 'upgrade-1' });
  await send('/v1/responses', { model: 'gpt-5.4-mini', input: 'Say two', store: true });
  const { body } = await send('/v1/conversations', { items: [{ type: 'message', role: 'user', content: 'Three' }] });
  await send('/v1/responses', { model: 'gpt-5.4-mini', input: 'Say four', conversation: body['id'] });
}

async function order(send: Send): Promise<void> {
  const prompt = 'A lighthouse';
  const callback = 'https://callbacks.invalid/';
  await send('/v1/images/generations', { model: 'gpt-image-2', prompt, callback_url: callback });
  await send('/v1/images/generations', { model: 'gpt-image-2', prompt });
  const lines = JSON.stringify({
    custom_id: 'one',
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Say five' }] },
  });
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new File([lines], 'lines.jsonl'));
  const { body } = await send('/v1/files', form);
  const ordered = { input_file_id: body['id'], endpoint: '/v1/chat/completions', completion_window: '24h' };
  await send('/v1/batches', ordered);
  const upload = { filename: 'later.txt', purpose: 'user_data', bytes: 10, mime_type: 'text/plain' };
  const begun = await send('/v1/uploads', upload);
  const part = new FormData();
  part.set('data', new File(['12345'], 'part'));
  await send(`/v1/uploads/${begun.body['id']}/parts`, part);
  await send('/v1/realtime/client_secrets', { session: { type: 'realtime', model: 'gpt-realtime-1.5' } });
  const headers = { 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' };
  await send('/upload/v1beta/files', { file: { display_name: 'slow' } }, headers);
  await send('/v1alpha/auth_tokens', {});
}

/** All but the refund of a charge, of which there is none yet. */
async function trade(gateway: TestGateway): Promise<void> {
  const entry = { name: 'alice', reason: 'upgrade' };
  await run(gateway, 'accounts credit', { ...entry, usd: '40', reference: 'paid' });
  await run(gateway, 'accounts credit', { ...entry, usd: '2', reference: 'given', kind: 'promotion', lasts: '30d' });
  await run(gateway, 'accounts debit', { ...entry, usd: '0.5', reference: 'taken' });
  await run(gateway, 'accounts refund', { ...entry, usd: '1', reference: 'back', credit: 'paid' });
  await run(gateway, 'plans buy', { plan: 'pro', account: 'alice', reference: 'plan' });
  const { codes } = (await run(gateway, 'codes create', { usd: '3' })) as { codes: string[] };
  await run(gateway, 'codes redeem', { code: codes[0]!, account: 'alice' });
  const short = { kind: 'promotion', reason: 'upgrade', reference: 'short', expiresAt: Date.now() + 1_500 };
  const { id } = (await gateway.gateway.find(accounts)!.find('alice'))!;
  await gateway.gateway.find(ledger)!.credit(id, money(300_000_000n), short);
}

const gateway = await startGateway('include: config/demo.yaml\nschema: upgrade\n');
await run(gateway, 'accounts create', { name: 'alice', plan: 'free' });
const made = (await run(gateway, 'keys create', { account: 'alice', name: 'first', tags: 'team=search' })) as {
  key: string;
};
console.error(`alice's key: ${made.key}`);
const send = senderOf(gateway, made.key);
await trade(gateway);
await call(send);
await order(send);
const { orm } = gateway.gateway.find(database)!;
const read = (text: string) => rowsOf<{ id: string }>(orm, sql.raw(text));
// All charges are in the ledger, and one grant has expired.
await pause(5_000);
const [charge] = await read('select id::text as id from upgrade.calls where cost > 1000 order by id limit 1');
const wrong = { name: 'alice', reason: 'upgrade', usd: '0.000001', reference: 'wrong', request: charge!.id };
await run(gateway, 'accounts refund', wrong);
await bookExpired(gateway.gateway.find(database)!);
await otherRows(gateway.gateway.find(database)!);
await exportTo(file, orm, Date.now());
console.error(JSON.stringify(await run(gateway, 'audit', {})));
for (const { id: name } of await read(
  "select tablename as id from pg_catalog.pg_tables where schemaname = 'upgrade' order by 1",
))
  if ((await read(`select '' as id from upgrade.${name} limit 1`)).length === 0) console.error(`no row: ${name}`);
await gateway.stop();
process.exit(0);
