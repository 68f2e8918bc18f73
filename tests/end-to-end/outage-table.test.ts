/**
 * The table of outages in docker/SCALING.md, row by row: what it says of a database that cannot be reached, at a gateway on a PostgreSQL;
 * of every other row the test that holds it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { systemClock } from '../../core/gateway/system.ts';
import { databaseUrl, testOnServer } from '../helpers/database.ts';
import { startTcpProxy } from '../helpers/tcp-proxy.ts';
import { type Customer, modelAt, startTestbed, until } from './testbed.ts';

const manager = 'plugins/billing/leases/manager.test.ts';
const own = 'end-to-end/outage-table.test.ts';
const away = 'a database that is away';

/** By a row's first cell: the file and a part of the title of the test that holds it. */
const heldBy: Readonly<Record<string, readonly [file: string, title: string]>> = {
  'database away: known keys of accounts that called within 10 s': [own, away],
  'database away: known keys of accounts that called within the hour': [manager, 'an account that paused is served'],
  'database away: known keys of accounts near zero': [manager, 'an account near zero is served on each node'],
  'database away: known keys, models that are free': [own, away],
  'database away: calls with an `Idempotency-Key`': [own, away],
  'database away: new keys, other accounts, tasks, batches, files, money-in, console': [own, away],
  'database away, and the backlog full': ['end-to-end/fleet-outages.process.test.ts', 'until the backlog is full'],
  'database away longer than 120 s': [own, away],
  'Redis away': ['plugins/rate-limit/counted.test.ts', 'each of four processes admits its quarter'],
  'bucket away': ['plugins/files/gateway.test.ts', 'a bucket that is away is shown'],
  'disk takes no journal': ['plugins/billing/recovery.test.ts', 'disk full: admission stops with 503'],
  'a process is killed': [manager, 'money that a dead node may owe stays leased'],
};

test('each row of the table of outages has a test', () => {
  const page = readFileSync('docker/SCALING.md', 'utf8');
  const table = page.slice(page.indexOf('| fault | served | 503 |')).split('\n\n')[0]!;
  const rows = table.split('\n').slice(2);
  assert.deepEqual(
    rows.map((row) => row.split(' | ')[0]!.replace(/^\| /, '')),
    Object.keys(heldBy),
  );
  for (const [file, title] of Object.values(heldBy)) {
    const titles = readFileSync(`tests/${file}`, 'utf8').matchAll(/\b(?:test|testOnServer)\(\s*['"`](.*)['"`],/g);
    assert.ok([...titles].some(([, text]) => text!.includes(title)) || file === own, `${file} has no test "${title}"`);
  }
});

const free = { input: 0, cache_read: 0, output: 0, call: 0 };

/** A gateway whose way to PostgreSQL can be cut; while it is, its monotonic clock goes on by steps alone. */
async function startOutage() {
  const server = new URL(databaseUrl!);
  const network = await startTcpProxy(Number(server.port) || 5432);
  server.host = `127.0.0.1:${network.port}`;
  let aheadMs = 0;
  let stoppedAt: number | undefined;
  const bed = await startTestbed({
    models: { free: { ...modelAt('sandbox/sandbox'), price: free } },
    environment: { DATABASE_URL: server.href },
    clock: { ...systemClock, monotonic: () => (stoppedAt ?? systemClock.monotonic()) + aheadMs },
  });
  const send = (customer: Customer, path: string, body?: object, headers: Record<string, string> = {}) =>
    fetch(bed.origin + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const chat = (customer: Customer, model = 'sandbox', headers: Record<string, string> = {}) => {
    const messages = [{ role: 'user', content: 'Hello' }];
    return send(customer, '/v1/chat/completions', { model, messages, max_tokens: 20 }, headers);
  };
  return {
    bed,
    send,
    chat,
    // Nothing listens there.
    cut() {
      stoppedAt = systemClock.monotonic();
      network.lead(1);
      network.cut();
    },
    heal() {
      stoppedAt = undefined;
      network.lead(Number(new URL(databaseUrl!).port) || 5432);
    },
    pass(milliseconds: number) {
      aheadMs += milliseconds;
    },
    async close() {
      network.lead(Number(new URL(databaseUrl!).port) || 5432);
      await bed.stop();
      network.close();
    },
  };
}

/** Status, the error's code, and whether it says when to come again. */
async function seen(answer: Promise<Response>): Promise<string> {
  const { status, headers, ...rest } = await answer.then(async (got) => ({
    status: got.status,
    headers: got.headers,
    text: await got.text(),
  }));
  if (status === 200) return '200';
  const { error } = JSON.parse(rest.text) as { error: { code?: string } };
  return `${status} ${error.code} ${headers.get('retry-after') === null ? 'for ever' : 'come again'}`;
}

testOnServer(
  `${away}: clients get each row of the table, and all are served and charged afterwards`,
  async (context) => {
    const { bed, send, chat, cut, heal, pass, close } = await startOutage();
    context.after(close);
    const [busy, empty, fresh] = [await bed.customer(), await bed.customer({ nanoUsd: 0n }), await bed.customer()];
    const key = { 'idempotency-key': 'answered before' };
    for (const answer of [chat(busy), chat(empty, 'free'), chat(busy, 'sandbox', key)])
      assert.equal(await seen(answer), '200');
    const ready = async () => (await fetch(`${bed.origin}/readyz`)).status;
    cut();
    for (const at of ['at once', 'a minute later']) {
      assert.equal(await seen(chat(busy)), '200', at);
      assert.equal(await seen(chat(empty, 'free')), '200', at);
      assert.equal(await seen(chat(busy, 'sandbox', key)), '200', at);
      for (let tries = 0; tries < 2; tries++)
        assert.equal(
          await seen(chat(busy, 'sandbox', { 'idempotency-key': 'a new one' })),
          '503 idempotency_unavailable come again',
          at,
        );
      assert.match(await seen(chat(fresh)), /^503 .* come again$/, at);
      assert.match(await seen(chat(empty)), /^503 balance_unavailable come again$/, at);
      for (const answer of [send(busy, '/v1/files'), send(busy, '/v1/balance'), send(busy, '/v1/batches')])
        assert.match(await seen(answer), /^503 /, at);
      await assert.rejects(bed.credit(busy, 1n), at);
      assert.equal(await ready(), 200, at);
      pass(60_000);
    }
    pass(2_000);
    assert.equal(await ready(), 503);
    assert.equal(await seen(chat(busy)), '200');
    pass(59_000);
    for (const answer of [chat(busy), chat(empty, 'free'), chat(fresh)])
      assert.match(await seen(answer), /^503 .* come again$/);
    heal();
    await until('it is ready', async () => (await ready()) === 200, 20_000);
    const again = [
      () => chat(busy),
      () => chat(empty, 'free'),
      () => chat(fresh),
      () => chat(busy, 'sandbox', { 'idempotency-key': 'a new one' }),
    ];
    // What failed is tried again after a pause; who comes again as described is served.
    for (const send of again) await until('it is served', async () => (await seen(send())) === '200', 20_000);
    const { charges } = await bed.records(busy, 7);
    assert.equal(charges.length, 7);
    await bed.audit();
  },
);
