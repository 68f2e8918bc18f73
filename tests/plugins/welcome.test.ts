/** The first account: one record where the log is not read at a terminal, and a text at one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Accounts, accounts } from '../../plugins/common/domain/accounts.ts';
import { usd } from '../../plugins/common/domain/money-schema.ts';
import welcome from '../../plugins/welcome/index.ts';
import { fakeHost } from '../helpers/fakes.ts';

const key = 'sk-gw-2ZipLQ8AXdWMZ3pre9oyXm8ZQkWn2S1hb5ogJvsJHS03NiQ1e';

/** What a first start writes to standard output by itself, and what it logs. */
async function firstStart(isTerminal: boolean) {
  const host = fakeHost();
  host.provide(accounts, {
    list: async () => [],
    create: async (name: string) => ({ id: 'account-1', name }),
    createKey: async () => ({ id: 'key-1', key, prefix: 'sk-gw-2Z' }),
  } as unknown as Accounts);
  const printed: string[] = [];
  const { write, isTTY } = process.stdout;
  const section = { account: 'demo', credit: usd().parse('10'), variable: 'GATEWAY_KEY', model: 'some-model' };
  const instance = await welcome.setup(host, section);
  Object.assign(process.stdout, { isTTY: isTerminal, write: (text: string) => printed.push(text) });
  try {
    await instance.lifecycle?.listening?.('http://127.0.0.1:8080');
  } finally {
    Object.assign(process.stdout, { write, isTTY });
  }
  return { printed: printed.join(''), lines: host.lines };
}

test('with a JSON log, the first key is one record with calls to copy, and nothing is printed beside', async () => {
  const { printed, lines } = await firstStart(false);
  assert.equal(printed, '');
  assert.equal(lines.length, 1);
  const { message, fields } = lines[0]!;
  assert.equal(message, 'an account was opened; its key is shown only now');
  const { first_calls: calls, ...rest } = fields as { first_calls: string[] };
  assert.deepEqual(rest, {
    time: new Date(fakeHost().clock.now()).toISOString(),
    ...{ account_id: 'account-1', account: 'demo', key, credit_usd: '10.00', url: 'http://127.0.0.1:8080' },
  });
  assert.equal(calls.length, 3);
  assert.ok(calls.every((call) => call.startsWith('curl http://127.0.0.1:8080/v1')));
});

test('at a terminal the first key is shown as a text for people', async () => {
  const { printed, lines } = await firstStart(true);
  assert.deepEqual(lines, []);
  assert.match(printed, new RegExp(`It is shown only now:\\n\\n {6}${key}\\n`));
  assert.match(printed, /First calls:\n\n {6}export GATEWAY_KEY=/);
  assert.match(printed, /\n\n {6}curl http:\/\/127\.0\.0\.1:8080\/v1\/messages .*\\\n {8}-d '\{"model":"some-model"/);
});
