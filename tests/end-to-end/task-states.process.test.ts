/** Every gateway is killed while a task is in each state of its life: it ends once, is billed or voided once, and the vendor's bill agrees. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type RunningVendor, startVendor } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl } from '../helpers/database.ts';
import { isWhole } from '../helpers/histories.ts';
import { type End, endsIn, type Nodes, openNodes, violationsIn } from './task-node.ts';

/** In front of the sandbox: files may be held back, and it is known what was asked. */
const requests: string[] = [];
let filesAreHeld = false;
let sandbox: RunningVendor;
const front = createServer(async (incoming, outgoing) => {
  const path = incoming.url ?? '';
  requests.push(`${incoming.method} ${path}`);
  while (filesAreHeld && path.startsWith('/files/')) await pause(20);
  const { method, headers } = incoming;
  const onward = request(sandbox.origin + path, { method: method!, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
});

interface Life {
  readonly model: string;
  readonly prompt: string;
  readonly streamed?: true;
  /** Resolves when the task is in the state in which everybody dies. */
  reached(): Promise<void>;
  /** What it must come to. */
  readonly end: 'completed' | 'failed';
}

/** Each has a model of its own, so that the bill names it. */
const lives: Record<string, Life> = {
  queued: {
    model: 'queued',
    prompt: 'A cat',
    reached: async () => assert.equal(await stateOf('queued'), 'submitted'),
    end: 'completed',
  },
  creating: {
    model: 'creating',
    prompt: 'A cat [[sandbox: takes=1500ms]]',
    reached: () => seen(() => requests.some((line) => line === 'POST /v1/images/generations')),
    end: 'failed',
  },
  streaming: {
    model: 'streaming',
    prompt: 'A cat [[sandbox: chunk_delay=1500ms]]',
    streamed: true,
    reached: () => seen(() => previews > 0),
    end: 'failed',
  },
  running: {
    model: 'running',
    prompt: 'A cat [[sandbox: takes=5s]]',
    reached: () => seen(() => requests.some((line) => line.startsWith('GET /imagine/v1/videos/'))),
    end: 'completed',
  },
  copying: {
    model: 'copying',
    prompt: 'A cat [[sandbox: takes=200ms]]',
    reached: () => seen(() => requests.some((line) => line.startsWith('GET /files/'))),
    end: 'completed',
  },
};
const blocker: Life = {
  model: 'blocking',
  prompt: 'A wall [[sandbox: takes=0ms]]',
  reached: async () => {},
  end: 'completed',
};
const all = [...Object.values(lives), blocker];
let previews = 0;

async function seen(look: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if (look()) return;
    await pause(20);
  }
  throw new Error('the state was not reached');
}

const films = new Set(['running', 'copying', 'blocking']);
const isFilm = (model: string) => films.has(model);
const yamlOf = (origin: string) => `
providers: { maker: { keys: vendor-key-1, speaks: { openai-images: "${origin}/v1", xai-videos: "${origin}/imagine/v1" } } }
models:
${all
  .map(({ model }) => {
    const price = isFilm(model) ? 'second: 0.05' : 'image: 0.01';
    return `  ${model}: { owned_by: tests, kind: ${isFilm(model) ? 'video' : 'image'}, targets: [maker/${model}], price: { ${price} } }`;
  })
  .join('\n')}
task-store: { workers: 1, lease: 1s, reconcile: 2s, poll: { first: 100ms, longest: 300ms }, retry: { first: 100ms, longest: 300ms } }
`;

// Whatever the store, a server shows it with two nodes, in two thirds of the time.
const skip = databaseUrl === undefined && !isWhole;
let opened: Nodes;
before(async () => {
  if (skip) return;
  sandbox = await startVendor();
  await once(front.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  opened = await openNodes(`states_${randomBytes(6).toString('hex')}`, yamlOf(origin));
});
after(async () => {
  await opened?.close();
  front.closeAllConnections();
  front.close();
  await sandbox?.close();
});

const headersOf = () => ({ authorization: `Bearer ${opened.key}`, 'content-type': 'application/json' });

/** Orders at any node; a stream gets each preview. */
async function order({ model, prompt, streamed }: Life): Promise<void> {
  const { origin } = opened.nodes.at(-1)!;
  const image = { type: 'image_url', image_url: { url: 'https://images.example.com/a.png' } };
  const film = { model, content: [{ type: 'text', text: prompt }, image], duration: 2 };
  const painting = { model, prompt, ...(streamed === undefined ? {} : { stream: true, partial_images: 2 }) };
  const path = isFilm(model) ? '/v1/contents/generations/tasks' : '/v1/images/generations';
  const body = JSON.stringify(isFilm(model) ? film : painting);
  const answer = await fetch(origin + path, { method: 'POST', headers: headersOf(), body });
  assert.equal(answer.status, 200);
  if (streamed === undefined) return void (await answer.text());
  const listen = async () => {
    for await (const _ of answer.body!) previews += 1;
  };
  // It is cut when its gateway is killed.
  listen().catch(() => {});
}

/** As its client sees it. */
async function stateOf(model: string): Promise<string> {
  const listed = await fetch(`${opened.nodes[0]!.origin}/v1/tasks?kind=image&limit=1`, { headers: headersOf() });
  const { data } = (await listed.json()) as { data: { data: { status: string } }[] };
  assert.equal(data.length, 1, model);
  return data[0]!.data.status;
}

/** Every worker copies a film that does not come. */
async function keepWorkersBusy(): Promise<void> {
  filesAreHeld = true;
  for (const _ of opened.nodes) await order(blocker);
  await seen(() => requests.filter((line) => line.startsWith('GET /files/')).length >= opened.nodes.length);
}

async function killAll(): Promise<void> {
  await Promise.all(opened.nodes.map((node) => node.kill()));
}

async function startAll(): Promise<void> {
  await Promise.all(opened.nodes.map((node) => node.start()));
}

async function allEnded(): Promise<void> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const listed = await fetch(`${opened.nodes[0]!.origin}/v1/tasks?limit=100`, { headers: headersOf() });
    const { data } = (await listed.json()) as { data: { status?: string; data?: { status: string } }[] };
    if (data.every((task) => /completed|succeeded|failed/.test((task.status ?? task.data?.status)!))) return;
    await pause(100);
  }
  throw new Error('not every task has ended');
}

/** Whatever was made was billed once, is paid where it came, and else is the operator's. */
function checkEnd({ model, state, kinds, cost, absorbed }: End): void {
  const expected = all.find((life) => life.model === model)!.end;
  assert.deepEqual([state, kinds], [expected, [expected === 'completed' ? 'charged' : 'free']], model);
  const due = state !== 'completed' ? '0' : isFilm(model) ? '100000000' : '10000000';
  assert.equal(cost, due, model);
  assert.equal(BigInt(absorbed) > 0n, state !== 'completed', model);
}

function checkBill(): void {
  const { totals } = sandbox.bill();
  for (const { model, streamed } of all) {
    const { image = 0, second = 0 } = totals[model]!;
    const films = model === 'blocking' ? opened.nodes.length : 1;
    // A stream that no one read to its end has brought no image.
    assert.deepEqual([image, second], isFilm(model) ? [0, 2 * films] : [streamed === true ? 0 : 1, 0], model);
  }
}

for (const [state, life] of Object.entries(lives)) {
  const again = life.end === 'failed' ? ', and again while it is reconciled' : '';
  test(`kill -9 while a task is ${state}${again}`, { skip }, async () => {
    await startAll();
    // What the life before has left is worked off first.
    await allEnded();
    requests.length = 0;
    filesAreHeld = life.model === 'copying';
    if (state === 'queued') await keepWorkersBusy();
    await order(life);
    await life.reached();
    await killAll();
    filesAreHeld = false;
    if (life.end === 'completed') return;
    // Found as lost by the one that is back first, and killed again in the middle of waiting for its outcome.
    await startAll();
    const lost = 'the worker that sent a task to its vendor was lost';
    await seen(() => opened.nodes.some(({ lines }) => lines.some((line) => line.includes(lost))));
    await killAll();
  });
}

test("at the end each task has ended once, is billed or voided once, and the vendor's bill agrees", {
  skip,
}, async () => {
  await startAll();
  await allEnded();
  await killAll();
  await opened.nodes[0]!.runAsCommand(async (gateway) => {
    const ends = await endsIn(gateway);
    assert.equal(ends.length, Object.keys(lives).length + opened.nodes.length);
    for (const end of ends) checkEnd(end);
    checkBill();
    assert.deepEqual(await violationsIn(gateway), []);
  });
});
