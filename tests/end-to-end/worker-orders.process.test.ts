/** Workers that are killed one after the other while a batch, a video and turns of WebSockets are under way: all end, and are paid at most once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startVendor } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl } from '../helpers/database.ts';
import { Stage } from '../rolling/stage.ts';
import { type Talk, talk } from './sockets.ts';

const lines = 48;
const socketCount = 8;
/** Lines of a batch that one worker has under way. */
const linesAtOnce = 4;
const slowTurn = '[[sandbox: tokens=60 chunks=60 chunk_delay=40ms]]';
const tasks = '/v1/contents/generations/tasks';

interface Batch {
  readonly id: string;
  readonly status: string;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly request_counts: { readonly completed: number; readonly failed: number };
}

/** Calls of one account; one whose connection ends with its worker is repeated, which no call that orders is. */
class Caller {
  readonly #stage: Stage;
  constructor(stage: Stage) {
    this.#stage = stage;
  }

  order(path: string, body: FormData | object): Promise<{ id: string }> {
    const isForm = body instanceof FormData;
    const headers = isForm ? {} : { 'content-type': 'application/json' };
    return this.#send(path, { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) }) as never;
  }

  async read<T>(path: string): Promise<T> {
    for (let tries = 0; ; tries++) {
      const found = await this.#send(path, {}).catch((error: Error) => error);
      if (!(found instanceof Error)) return found as T;
      if (tries > 100) throw found;
      await pause(50);
    }
  }

  async #send(path: string, init: RequestInit): Promise<unknown> {
    const headers = { ...init.headers, authorization: `Bearer ${this.#stage.keys[0]}`, connection: 'close' };
    const answer = await fetch(`http://127.0.0.1:${this.#stage.port}${path}`, { ...init, headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return path.endsWith('/content') ? text : JSON.parse(text);
  }
}

async function orderBatch(caller: Caller): Promise<string> {
  const line = (index: number) => ({
    ...{ custom_id: `line-${index}`, method: 'POST', url: '/v1/chat/completions' },
    body: { model: 'm', messages: [{ role: 'user', content: `${index} [[sandbox: delay=300ms]]` }] },
  });
  const form = new FormData();
  form.set('purpose', 'batch');
  const text = Array.from({ length: lines }, (_, index) => JSON.stringify(line(index))).join('\n');
  form.set('file', new Blob([text]), 'input.jsonl');
  const { id } = await caller.order('/v1/files', form);
  const order = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' };
  return (await caller.order('/v1/batches', order)).id;
}

/** Turns on the caller's worker or the other one, half of them relayed over WebSocket; resolves when all have begun. */
async function beginTurns(stage: Stage): Promise<Talk[]> {
  const open = (_: unknown, index: number) =>
    talk(`http://127.0.0.1:${stage.port}`, stage.keys[index % stage.keys.length]!);
  const clients = await Promise.all(Array.from({ length: socketCount }, open));
  clients.forEach((client, index) => {
    const model = index % 2 === 0 ? 'm' : 'relayed';
    client.send({ type: 'response.create', model, store: false, input: slowTurn });
  });
  const hasBegun = ({ messages }: Talk) => messages.at(-1)?.type === 'response.output_text.delta';
  await stage.until(() => clients.every(hasBegun), 'all turns have begun');
  return clients;
}

type Acknowledged = Parameters<Stage['judge']>[0]['acknowledged'][number];

/** What became of each: whole, or closed by the death of its worker without an end. */
async function endOf(client: Talk, index: number): Promise<Acknowledged | number> {
  const cut = await Promise.race([client.closed, client.next().catch(() => client.closed)]);
  if (typeof cut === 'number') return cut;
  await client.close();
  const { type, response } = cut.at(-1);
  assert.equal(type, 'response.completed', JSON.stringify(cut.at(-1)));
  const requestId = index % 2 === 0 ? response.id.replace(/^resp_/, '') : response.id;
  return { requestId, promptTokens: response.usage.input_tokens, completionTokens: response.usage.output_tokens };
}

async function testKills(stage: Stage) {
  const caller = new Caller(stage);
  const batchId = await orderBatch(caller);
  const order = { model: 'film', content: [{ type: 'text', text: 'A fox [[sandbox: takes=4s]]' }], duration: 5 };
  const task = await caller.order(tasks, order);
  const batch = () => caller.read<Batch>(`/v1/batches/${batchId}`);
  const film = () => caller.read<{ status: string }>(`${tasks}/${task.id}`);
  const progress = async () => {
    const { completed } = (await batch()).request_counts;
    while ((await batch()).request_counts.completed < completed + linesAtOnce) await pause(20);
  };
  const clients: Talk[] = [];
  const served = stage.count('a worker serves');
  const workers = stage.workerIds;
  for (const worker of workers) {
    clients.push(...(await beginTurns(stage)));
    await progress();
    assert.notEqual((await batch()).status, 'completed', 'the batch is under way');
    process.kill(worker, 'SIGKILL');
  }
  const ends = await Promise.all(clients.map(endOf));
  const acknowledged = ends.filter((end) => typeof end !== 'number');
  const codes = ends.filter((end) => typeof end === 'number');
  await stage.until(() => stage.count('a worker serves') >= served + workers.length, 'both have successors');
  assert(codes.length > 0 && codes.every((code) => code === 1006), `${codes}`);
  let last = await batch();
  for (; last.status !== 'completed'; last = await batch()) await pause(100);
  while (/queued|running/.test((await film()).status)) await pause(100);
  assert.equal((await film()).status, 'succeeded');
  const linesOf = async (id: string | null) =>
    id === null ? [] : (await caller.read<string>(`/v1/files/${id}/content`)).trimEnd().split('\n');
  const lost = await linesOf(last.error_file_id);
  const all = [...(await linesOf(last.output_file_id)), ...lost];
  assert.equal(new Set(all.map((line) => JSON.parse(line).custom_id)).size, lines);
  assert.equal(all.length, lines);
  assert(lost.length > 0, 'the batch has lost its worker');
  assert(lost.length <= 2 * linesAtOnce, `${lost.length} lines have no answer`);
  return { acknowledged, films: { taken: new Set([task.id]), cancelled: 0, unfinished: [] } };
}

if (databaseUrl !== undefined)
  test('when both workers are killed in turn, their batch and video continue in the other, their sockets close, each is paid once', {
    timeout: 120_000,
  }, async (t) => {
    const studio = await startVendor();
    t.after(() => studio.close());
    const stage = await Stage.build({ workers: 2, database: databaseUrl!, studio: studio.origin });
    t.after(() => stage.close());
    await stage.openAccounts(2);
    await stage.start();
    const { acknowledged, films } = await testKills(stage);
    assert.equal(await stage.stop(), 0);
    const bill = studio.bill();
    const { violations, account, requests } = await stage.judge({ acknowledged, films: { ...films, bill } });
    for (const line of account) t.diagnostic(line);
    assert.deepEqual(violations, []);
    assert(requests <= lines + 2 * socketCount, `the vendor got ${requests} requests`);
    assert.equal(bill.requests, 1, 'the video was ordered once');
  });
