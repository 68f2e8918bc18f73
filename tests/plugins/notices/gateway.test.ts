/** Notices of a whole gateway: real money, a real key with a cap, and mails to the account's person. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { type SQL, sql } from 'drizzle-orm';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { rowsOf, tableOf } from '../../../plugins/common/kit/sql.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { smtpSink } from '../../helpers/smtp-sink.ts';
import { until } from '../../helpers/until.ts';

const answer = {
  ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
const vendor = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
});
const mails: string[] = [];
const smtp = smtpSink(mails);
const listen = (server: typeof smtp) =>
  new Promise<number>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  );

let running: TestGateway;
before(async () => {
  const [vendorPort, smtpPort] = [await listen(vendor), await listen(smtp)];
  running = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, providers, models, billing, route, protocol-convert, notices, console]
plans: { default: free, offers: { free: { price: 0 } } }
providers: { acme: { speaks: { chat: "http://127.0.0.1:${vendorPort}/v1" }, keys: k } }
models: { m: { owned_by: acme, price: { input: 1, output: 1, request: 2 }, targets: [acme/m] } }
notices: { every: 1s }
billing: { budgets: [{ of: account, amount: 4, every: month, hard: false, warn: [0.5, 0.9] }] }
console: { name: Shop, origin: "https://gateway.test", brand: { imprint: "https://shop.test/imprint" }, smtp: { host: 127.0.0.1, port: ${smtpPort}, from: "gateway@example.test", encryption: none } }
`);
});
after(async () => {
  await running?.stop();
  vendor.close();
  smtp.close();
});

test('a call that takes the balance, a cap and a budget beyond their thresholds is a mail for each, once', async () => {
  const { gateway, origin } = running;
  const store = gateway.find(database)!;
  const has = async (name: string, condition: SQL) =>
    (await rowsOf(store.orm, sql`select 1 from ${tableOf(store, name)} where ${condition}`)).length > 0;
  const { id } = await gateway.find(accounts)!.create('ada', 'free');
  await store.orm.execute(sql`insert into ${tableOf(store, 'console_people')}
    (id, name, email, email_verified, account_id, created_at, updated_at)
    values ('ada', 'Ada', 'ada@example.test', true, ${id}, now(), now())`);
  const cap = { amount: parseUsd('2.5'), every: 'day' } as const;
  const { key } = await gateway.find(accountAdmin)!.createKey(id, { name: 'build', cap });
  await until('the first look', () => has('notice_look', sql`movement is not null`));
  await gateway.find(ledger)!.credit(id, parseUsd('6'), { kind: 'manual', reason: 'test', reference: 'ada' });
  await until('the credit is seen', () => has('notice_states', sql`kind = 'low_balance' and not is_beyond`));
  const called = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  assert.equal(called.status, 200, await called.text());
  await until('all mails', () => mails.length >= 3);
  await until('nothing waits', async () => !(await has('notice_messages', sql`due_at is not null`)));
  const subjects = mails.map((mail) => /^Subject: (.*)\r$/m.exec(mail)?.[1]);
  assert.deepEqual(subjects.sort(), [
    'test: A budget has been spent to a share of it',
    'test: A key nears its spend cap',
    'test: Low balance',
  ]);
  assert.match(mails.join('\n'), /The budget for the account has \$2\.\d+ of \$4\.00 spent this month\./);
  for (const mail of mails) {
    assert.match(mail, /^To: ada@example\.test\r$/m);
    assert.match(mail, /^List-Unsubscribe:\s+<https:\/\/gateway\.test\/console\/profile\?account=[\w-]+>\r$/m);
    assert.match(mail, /\r\n--(?: |=20)\r\nShop\r\nhttps:\/\/gateway\.test\r\nhttps:\/\/shop\.test\/imprint/);
  }
});
