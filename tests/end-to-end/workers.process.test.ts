/** Several workers behind one address: they are replaced, reloaded, killed and stopped under load, and no connection is dropped. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { databaseUrl } from '../helpers/database.ts';
import { RollingClients } from '../rolling/clients.ts';
import { roll } from '../rolling/rolling.ts';
import { Stage } from '../rolling/stage.ts';
import { type Message, type Talk, talk } from './sockets.ts';

/** Workers need a database that several processes may open; without one these tests are not defined. */
const testWorkers = (name: string, run: (context: TestContext) => Promise<void>): void =>
  databaseUrl === undefined ? undefined : void test(name, { timeout: 240_000 }, run);
const clientCount = 8;

testWorkers('two rolling restarts and three reloads under load drop no call, and the three bills agree', async (t) => {
  const stage = await Stage.build({ workers: 2, database: databaseUrl! });
  t.after(() => stage.close());
  await stage.openAccounts(4);
  await stage.start();
  const { drops, violations, answers, farewells, account } = await roll(stage, {
    restarts: 2,
    reloads: 3,
    clients: clientCount,
  });
  for (const line of account) t.diagnostic(line);
  assert.deepEqual(drops, []);
  assert.deepEqual(violations, []);
  assert(answers > 100, `${answers} answers`);
  assert(farewells >= clientCount, `${farewells} connections were closed by a header`);
});

testWorkers(
  'a worker killed under load costs only its own connections an error, and its successor has its journal',
  async (t) => {
    const stage = await Stage.build({ workers: 2, database: databaseUrl!, lines: true });
    t.after(() => stage.close());
    await stage.openAccounts(4);
    await stage.start();
    const clients = new RollingClients(stage.port, stage.keys, clientCount);
    const kills = 2;
    for (let turn = 0; turn < kills; turn++) {
      await pause(800);
      const served = stage.count('a worker serves');
      process.kill(stage.workerIds[turn % 2]!, 'SIGKILL');
      await stage.until(() => stage.count('a worker serves') > served, 'the dead one has a successor');
    }
    await pause(500);
    await clients.stop();
    assert.equal(await stage.stop(), 0);
    const { violations, account } = await stage.judge(clients);
    for (const line of account) t.diagnostic(line);
    t.diagnostic(`${clients.drops.length} answers were cut off by ${kills} kills`);
    assert.deepEqual(violations, []);
    assert.deepEqual(
      clients.drops.filter(({ what }) => what.includes('status')),
      [],
    );
    assert(clients.drops.length <= kills * clientCount, JSON.stringify(clients.drops));
    assert.deepEqual(stage.places().sort(), ['journal', 'worker-2']);
    // They write to one output, and tear no line of one another's.
    const lines = stage.output.split('\n').filter((line) => line.includes('"msg":"'));
    assert(lines.length > clients.acknowledged.length / 2, `${lines.length} lines`);
    for (const line of lines) assert.doesNotThrow(() => JSON.parse(line), line);
  },
);

testWorkers('when three workers were killed, one worker finishes their work', async (t) => {
  const stage = await Stage.build({ workers: 3, database: databaseUrl! });
  t.after(() => stage.close());
  await stage.openAccounts(4);
  await stage.start();
  const clients = new RollingClients(stage.port, stage.keys, clientCount);
  await pause(1_500);
  for (const id of stage.workerIds) process.kill(id, 'SIGKILL');
  await stage.stop('SIGKILL');
  await clients.stop();
  stage.launch('1');
  await stage.until(() => stage.count('a worker serves') === 3 + 1 + 2, 'all journals have been taken up');
  await stage.until(() => stage.workerIds.length === 1, 'who took up the further ones has left');
  assert.equal(await stage.stop(), 0);
  const { violations, account } = await stage.judge(clients);
  for (const line of account) t.diagnostic(line);
  assert.deepEqual(violations, []);
});

/** What the console's page of the configuration does, without its people. */
const saver = `
import { definePlugin } from '${process.cwd()}/core/contract/contract.ts';
import { configFiles } from '${process.cwd()}/core/contract/config-files.ts';
import { z } from '${process.cwd()}/core/contract/schema.ts';
export default definePlugin({
  name: 'saver',
  config: z.strictObject({}),
  services: { optional: [configFiles] },
  setup: (host) => ({
    endpoints: [{
      method: 'POST', path: '/save', operation: 'save', keyless: true, body: 'none',
      async handle() {
        const files = host.find(configFiles);
        const [{ name, text }] = (await files.view()).files;
        const { changes } = await files.save(name, text.replace('max_output: 4k', 'max_output: 3k'), text);
        return { status: 200, headers: {}, body: JSON.stringify(changes) };
      },
    }],
  }),
});
`;

testWorkers('two workers are one gateway: its files, its log, its connections and its end', async (t) => {
  const stage = await Stage.build({ workers: 2, database: databaseUrl!, plugin: saver });
  t.after(() => stage.close());
  await stage.start();

  await t.test('files that do not fit are refused before any worker hears of them, and replace no worker', async () => {
    const workers = stage.workerIds;
    stage.write(2, 'rate-limit: { no_such_setting: 1 }');
    stage.primary.kill('SIGHUP');
    await stage.until(() => stage.count('the running configuration stays') === 1, 'it is refused');
    assert.match(stage.output, /gateway\.yaml:\d+.*no_such_setting/);
    stage.primary.kill('SIGUSR2');
    await stage.until(() => stage.count('the running configuration stays') === 2, 'it is refused');
    assert.deepEqual(stage.workerIds, workers);
    await stage.reload();
    assert.equal(stage.count('the changed files are in force'), 2);
  });

  await t.test('a file that somebody saves through one worker is in force in both', async () => {
    const saved = await fetch(`http://127.0.0.1:${stage.port}/save`, {
      method: 'POST',
      // A kept connection could be one to the worker that is killed below.
      headers: { connection: 'close' },
    });
    assert.equal(saved.status, 200, await saved.text());
    await stage.until(() => stage.count('the changed files are in force') === 4, 'both have taken it up');
    await pause(300);
    assert.equal(stage.count('the files say nothing new'), 0);
  });

  await t.test(
    'one that takes a connection to its death loses no client: the connection goes to the other',
    async () => {
      const [first] = stage.workerIds;
      // It takes connections no more, and does not say so.
      process.kill(first!, 'SIGSTOP');
      const requested = Array.from({ length: 6 }, () =>
        fetch(`http://127.0.0.1:${stage.port}/healthz`, {
          headers: { connection: 'close' },
          signal: AbortSignal.timeout(20_000),
        }),
      );
      await pause(500);
      process.kill(first!, 'SIGKILL');
      const answers = await Promise.all(requested);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 200, 200],
      );
      await stage.until(() => stage.count('a worker serves') === 3, 'the dead one has a successor');
    },
  );

  await t.test('a line that one worker logs for all stays one line, also when both workers are replaced', async () => {
    await stage.restart();
    assert.equal(stage.count('its key is shown only now'), 1);
    assert.equal(stage.count('each of these processes counts the limits by itself'), 1);
  });

  await t.test('SIGTERM lets the streams of both end', async () => {
    await stage.openAccounts(1);
    const body = JSON.stringify({
      model: 'm',
      stream: true,
      messages: [{ role: 'user', content: '[[sandbox: tokens=60 chunks=60 chunk_delay=40ms]]' }],
    });
    const streams = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const headers = { authorization: `Bearer ${stage.keys[0]}`, 'content-type': 'application/json' };
        return fetch(`http://127.0.0.1:${stage.port}/v1/chat/completions`, { method: 'POST', headers, body });
      }),
    );
    const exit = stage.stop();
    for (const stream of streams) assert.match(await stream.text(), /data: \[DONE\]\s*$/);
    assert.equal(await exit, 0);
  });
});

testWorkers('WebSockets stay open through a reload, end with their turn at a restart, and connect again', async (t) => {
  const stage = await Stage.build({ workers: 2, database: databaseUrl! });
  t.after(() => stage.close());
  await stage.openAccounts(2);
  await stage.start();
  const acknowledged: Parameters<Stage['judge']>[0]['acknowledged'] = [];
  // The model of odd ones is relayed over WebSocket; such a response has the vendor's id.
  const modelOf = (index: number) => (index % 2 === 0 ? 'm' : 'relayed');
  const end = (message: Message, index: number): string => {
    assert.equal(message.type, 'response.completed', JSON.stringify(message));
    const { id, usage } = message.response;
    const requestId = modelOf(index) === 'relayed' ? id : id.replace(/^resp_/, '');
    acknowledged.push({ requestId, promptTokens: usage.input_tokens, completionTokens: usage.output_tokens });
    return id;
  };
  const open = () =>
    Promise.all(
      Array.from({ length: clientCount }, (_, index) =>
        talk(`http://127.0.0.1:${stage.port}`, stage.keys[index % stage.keys.length]!),
      ),
    );
  const turnOf = (index: number, input: string, previous?: string) => ({
    ...{ model: modelOf(index), store: false, input: [{ type: 'message', role: 'user', content: input }] },
    previous_response_id: previous,
  });
  const turns = (clients: readonly Talk[], input: string, previous: readonly string[] = []) =>
    Promise.all(
      clients.map(async (client, index) =>
        end((await client.turn(turnOf(index, input, previous[index]))).at(-1), index),
      ),
    );
  const clients = await open();
  const first = await turns(clients, 'One');
  await stage.reload();
  const second = await turns(clients, 'Two', first);
  clients.forEach((client, index) => {
    const slow = turnOf(index, '[[sandbox: tokens=60 chunks=60 chunk_delay=40ms]]', second[index]);
    client.send({ type: 'response.create', ...slow });
  });
  const haveBegun = () => clients.every(({ messages }) => messages.at(-1).type === 'response.output_text.delta');
  await stage.until(haveBegun, 'all turns have begun');
  await stage.restart();
  for (const [index, client] of clients.entries()) {
    assert.equal(await client.closed, 1012);
    end(client.messages.at(-1), index);
  }
  const again = await open();
  await turns(again, 'Three');
  await Promise.all(again.map((client) => client.close()));
  assert.equal(await stage.stop(), 0);
  const { violations, account } = await stage.judge({ acknowledged });
  for (const line of account) t.diagnostic(line);
  assert.deepEqual(violations, []);
  assert.equal(acknowledged.length, 4 * clientCount);
});

testWorkers('workers that cannot start end the primary with a log line', async (t) => {
  const stage = await Stage.build({
    workers: 2,
    database: 'postgres://missing@127.0.0.1:9/nowhere',
    startTimeout: '1s',
  });
  t.after(() => stage.close());
  stage.launch();
  const [code] = await once(stage.primary, 'exit');
  assert.equal(code, 1);
  assert.match(stage.output, /No worker can be started: 5 in a row have ended at their start/);
});

test('workers refuse the embedded store with a reason', async (t) => {
  const stage = await Stage.build({ workers: 2, database: 'embedded' });
  t.after(() => stage.close());
  for (const [workers, reason] of [
    ['2', /embedded database belongs to one process.*DATABASE_URL/],
    ['none', /--workers must be .{0,2}auto/],
  ] as const) {
    stage.launch(workers);
    const [code] = await once(stage.primary, 'exit');
    assert.equal(code, 1);
    assert.match(stage.output, reason);
  }
});
