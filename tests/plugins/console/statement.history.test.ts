/** The wallet's ledger over HTTP and as CSV, for any history on the whole demo gateway: its lines add up like a bank statement's. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import type { Browser } from './browser.ts';
import { operatorOf, startDemo, type TestConsole } from './start-console.ts';

let testbed: TestConsole;
let boss: Browser;
let people = 0;

before(async () => {
  testbed = await startDemo();
  boss = await operatorOf(testbed);
});
after(() => testbed.stop());

interface Client {
  readonly browser: Browser;
  readonly accountId: string;
  readonly key: string;
  /** Ids of its calls that were answered. */
  readonly answered: string[];
}
interface Line {
  readonly seq: string;
  readonly kind: string;
  readonly requestId: string | null;
  readonly change: string;
  readonly balanceAfter: string;
}

async function newClient(): Promise<Client> {
  const browser = testbed.browser();
  const email = `client${++people}@example.test`;
  await browser.send('/auth/sign-up/email', { body: { email, password: 'a long enough password', name: 'Ada' } });
  const accountId = (await browser.send('/me')).json.account.id;
  return {
    browser,
    accountId,
    key: (await browser.send('/keys', { body: { name: 'laptop' } })).json.key,
    answered: [],
  };
}

const act = (path: string, amount: string) =>
  boss.send(path, { body: { amount, reason: 'test' }, headers: { 'idempotency-key': crypto.randomUUID() } });
async function post({ key, answered }: Client, path: string, body: object): Promise<void> {
  const answer = await fetch(`${testbed.origin}/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await answer.text();
  if (answer.ok) answered.push(answer.headers.get('x-request-id')!);
}
const call = (client: Client, model = 'gpt-5.4-mini') =>
  post(client, '/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] });

type Step = (client: Client) => Promise<unknown>;
const steps = fc.oneof(
  fc.integer({ min: 1, max: 30_000 }).map(
    (cents): Step =>
      ({ accountId }) =>
        act(`/admin/accounts/${accountId}/credit`, `${cents / 100}`),
  ),
  fc.integer({ min: 1, max: 900 }).map(
    (cents): Step =>
      ({ accountId }) =>
        act(`/admin/accounts/${accountId}/debit`, `${cents / 100}`),
  ),
  // Calls beside one another: the hold of one stands while another is charged.
  fc.integer({ min: 1, max: 5 }).map(
    (count): Step =>
      (client) =>
        Promise.all(Array.from({ length: count }, () => call(client))),
  ),
  fc.constant<Step>((client) => call(client, 'no-such-model')),
  fc.constant<Step>((client) => post(client, '/images/generations', { model: 'gpt-image-2', prompt: 'a lighthouse' })),
  fc.constant<Step>(async (client) => {
    const lines = await pagesOf(client, 500);
    const charge = lines.find(({ kind }) => kind === 'CHARGE');
    if (charge !== undefined) await act(`/admin/requests/${charge.requestId}/refund`, '0.000001');
  }),
);

async function pagesOf({ browser }: Client, limit: number): Promise<Line[]> {
  const lines: Line[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const more: string = after === '' ? '' : `&after=${after}`;
    const { json } = await browser.send(`/wallet/ledger?limit=${limit}${more}`);
    lines.push(...json.rows);
    after = json.next;
  }
  return lines;
}

function addsUp(lines: readonly Line[], balance: string): void {
  let before = 0n;
  for (const { kind, change, balanceAfter } of lines.toReversed()) {
    assert.equal(parseUsd(balanceAfter), before + parseUsd(change), kind);
    assert.equal(change.startsWith('-'), kind === 'CHARGE' || kind === 'DEBIT', `${kind} ${change}`);
    before = parseUsd(balanceAfter);
  }
  assert.equal(before, parseUsd(balance));
}

/** A call's cost reaches the ledger soon; each answered call has a line, and nothing is held then. */
async function settled(client: Client): Promise<string> {
  const { browser, answered } = client;
  for (let attempt = 0; attempt < 400; attempt++) {
    const lines = await pagesOf(client, 500);
    const { balance, held } = (await browser.send('/wallet')).json;
    const isThere = answered.every((id) => lines.some(({ requestId }) => requestId === id));
    if (isThere && held === '0.00' && (lines[0]?.balanceAfter ?? '0.00') === balance) return balance;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the calls were not settled within twenty seconds');
}

test('after any events of an account, the lines of its wallet add up, page by page and as CSV', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(steps, { minLength: 3, maxLength: 12 }),
      fc.integer({ min: 1, max: 4 }),
      async (list, limit) => {
        const client = await newClient();
        await act(`/admin/accounts/${client.accountId}/credit`, '20');
        for (const step of list) await step(client);
        const balance = await settled(client);
        const lines = await pagesOf(client, limit);
        addsUp(lines, balance);
        for (const who of [
          client.browser.send('/wallet/ledger.csv'),
          boss.send(`/admin/ledger.csv?accountId=${client.accountId}`),
        ]) {
          const [head, ...rows] = (await who).text.trimEnd().split('\r\n');
          const columns = head!.split(',');
          const cell = (row: string, name: string) => row.split(',')[columns.indexOf(name)];
          const same = (name: 'seq' | 'change' | 'balanceAfter') =>
            assert.deepEqual(
              rows.map((row) => cell(row, name)),
              lines.map((line) => line[name]),
            );
          for (const name of ['seq', 'change', 'balanceAfter'] as const) same(name);
        }
      },
    ),
    { numRuns: runsOf(4, 12) },
  );
});
