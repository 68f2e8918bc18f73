/** A gateway that is killed in the middle of a batch, again and again: each line reaches the vendor once at most, and all have an end. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { boot } from '../../../core/gateway/boot.ts';
import { createLog } from '../../../core/gateway/log.ts';
import { accounts } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { freePort } from '../../helpers/free-port.ts';
import { fillMigrated } from '../../helpers/migrated.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const lines = 60;
const kills = 3;

function node(context: TestContext, words: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.after(() => void child.kill('SIGKILL'));
  return child;
}

test('a batch survives kills in its middle', { timeout: 240_000 }, async (context) => {
  const directory = temporaryDirectory('batch-kill-');
  const vendor = String((await once(node(context, ['plugins/sandbox/main.ts']).stdout!, 'data'))[0]).trim();
  const port = await freePort();
  const file = join(directory, 'gateway.yaml');
  writeFileSync(
    file,
    `
gateway: batch-kill
schema: test
listen: 127.0.0.1:${port}
data: ${directory}
log: error
plugins: [storage, request-log, files, auth, plans, rate-limit, providers, models, idempotency, billing, route, protocol-convert, uploads, batches]
storage: { database: embedded }
plans: { default: free, offers: { free: { price: 0 } } }
providers: { vendor: { keys: key, speaks: { chat: "${vendor}/v1" } } }
models: { m: { owned_by: vendor, targets: [vendor], context: 100k, max_output: 100, price: { input: 1, output: 2 }, batch: 0.5 } }
batches: { lease: 1s }
`,
  );
  await fillMigrated(directory, 'test');
  const inside = async <T>(work: (gateway: Awaited<ReturnType<typeof boot>>) => Promise<T>): Promise<T> => {
    const gateway = await boot(file, {
      mode: 'serve',
      log: createLog('error', () => {}),
      environment: process.env as Record<string, string>,
    });
    await gateway.serve();
    try {
      return await work(gateway);
    } finally {
      await gateway.stop(5_000);
    }
  };
  const { key, id: accountId } = await inside(async (gateway) => {
    const account = await gateway.find(accounts)!.create('one', 'free');
    const grant = { kind: 'manual', reason: 'test', reference: 'one' };
    await gateway.find(ledger)!.credit(account.id, parseUsd('10'), grant);
    return { id: account.id, key: (await gateway.find(accounts)!.createKey(account.id, { name: 'one' })).key };
  });
  const call = async (method: string, path: string, body?: FormData | string) => {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
    };
    for (let tries = 0; ; tries++) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      }).catch(() => undefined);
      if (answer?.ok === true) return answer;
      if (tries > 600) throw new Error(`${method} ${path}: ${answer?.status} ${await answer?.text()}`);
      await pause(100);
    }
  };
  const start = () => node(context, ['core/process/main.ts', 'serve', file]);
  let gateway = start();
  const input = Array.from({ length: lines }, (_, index) =>
    JSON.stringify({
      custom_id: `line-${index}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model: 'm', messages: [{ role: 'user', content: `${index} [[sandbox: delay=300ms]]` }] },
    }),
  );
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([input.join('\n')]), 'input.jsonl');
  const uploaded = (await (await call('POST', '/v1/files', form)).json()) as { id: string };
  const order = { input_file_id: uploaded.id, endpoint: '/v1/chat/completions', completion_window: '24h' };
  const { id } = (await (await call('POST', '/v1/batches', JSON.stringify(order))).json()) as { id: string };
  interface State {
    readonly status: string;
    readonly output_file_id: string;
    readonly error_file_id: string | null;
    readonly request_counts: { readonly completed: number; readonly failed: number };
  }
  const state = async () => (await (await call('GET', `/v1/batches/${id}`)).json()) as State;
  for (let kill = 1; kill <= kills; kill++) {
    for (;;) {
      const { request_counts: counts, status } = await state();
      if (counts.completed + counts.failed >= kill * 10 || status === 'completed') break;
      await pause(50);
    }
    gateway.kill('SIGKILL');
    await once(gateway, 'exit');
    gateway = start();
  }
  let batch = await state();
  while (batch.status !== 'completed') {
    await pause(200);
    batch = await state();
  }
  const read = async (file: string | null) =>
    file === null ? [] : (await (await call('GET', `/v1/files/${file}/content`)).text()).trimEnd().split('\n');
  const answered = await read(batch.output_file_id);
  const lost = await read(batch.error_file_id);
  const seen = [...answered, ...lost].map((line) => (JSON.parse(line) as { custom_id: string }).custom_id);
  assert.equal(new Set(seen).size, lines);
  assert.equal(seen.length, lines);
  // What was sent by a process that was killed has an answer that no one has.
  assert.ok(lost.length <= kills * 4, `${lost.length} lines have no answer`);
  const bill = (await (await fetch(`${vendor}/bill`)).json()) as { requests: number };
  assert.ok(bill.requests <= lines && bill.requests >= answered.length, `${bill.requests} for ${answered.length}`);
  gateway.kill('SIGTERM');
  await once(gateway, 'exit');
  await inside(async (again) => {
    const command = (name: string, values: Record<string, string>) =>
      again.commands.find((one) => one.name === name)!.run(values);
    assert.deepEqual(((await command('audit', {})).json as { violations: unknown[] }).violations, []);
    const { rows } = (await command('ledger', { account: accountId, limit: '1000' })).json as {
      rows: { kind: string; detail: { ratio: string; estimated?: boolean } }[];
    };
    const charges = rows.filter(({ kind }) => kind === 'CHARGE');
    const ratios = charges.map(({ detail }) => detail.ratio.split('/').map(Number));
    assert.ok(
      ratios.every(([numerator, denominator]) => numerator! / denominator! === 0.5),
      'each line is charged by the ratio for batches',
    );
    assert.equal(charges.filter(({ detail }) => detail.estimated !== true).length >= answered.length, true);
    assert.ok(charges.length <= lines);
  });
});
