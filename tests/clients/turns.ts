/** Coding clients each read a file through the gateway, whatever protocol the model behind it speaks. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { hold } from '../conformance/results.ts';
import { type Customer, modelAt } from '../end-to-end/testbed.ts';
import { until } from '../helpers/until.ts';
import { reported, signature } from './agent.ts';
import { type Client, clients, isFleet } from './clients.ts';
import { type Ground, startGround } from './ground.ts';
import { versionOf } from './install.ts';
import { type Finished, run } from './launch.ts';
import { type AgentVendor, type ProtocolName, protocols, startAgentVendor, upstreamModel } from './vendor.ts';

interface RequestRow {
  readonly account_id: string | null;
  readonly operation: string;
  readonly model: string;
  readonly status: number;
  readonly outcome: string;
  readonly attempts: number;
  readonly streamed: boolean;
  readonly usage: Record<string, number> | null;
  readonly usage_estimated: boolean | null;
}

/** Beside the two requests of the turn: one for a title, one that counts tokens. */
const mostRequests = 4;

/** Longer than a client may take: launch.ts ends it. */
const timeout = 90_000;

/** Vendors' protocols before which each client's turn held. */
const held = new Map(clients.map(({ name }) => [name, 0]));

let ground: Ground;
before(async () => {
  ground = await startGround({ plans: { default: 'open', offers: { open: { price: 0 } } } });
});
after(() => ground?.close());

for (const protocol of protocols.filter((name) => name === (process.env['ONLY_PROTOCOL'] ?? name))) {
  describe(`in front of a vendor that speaks ${protocol}`, () => {
    let scene: Scene;
    before(async () => {
      scene = await openScene(protocol);
    });
    after(() => scene.close());

    for (const client of clients)
      test(`${client.name} ${client.edits ? 'edits' : 'reads'} a file by its own means and reports its content`, {
        timeout,
      }, async (context) => {
        const turned = await scene.turn(client);
        const { finished, handed } = turned;
        const reply = replyOf(turned);
        context.diagnostic(`${finished.tookMs} ms, handed ${handed.join(' and ')}, ${outcomesOf(turned)}`);
        assert.equal(finished.exitCode, 0, reply);
        assert.ok(client.answerIn(finished.stdout).includes(turned.secret), reply);
        if (client.edits) assert.equal(turned.file, `The word was ${turned.secret}.\n`);
        assert.deepEqual(finished.strayed, []);
        assertRequested(client, protocol, turned);
        assertSettled(client, turned);
        held.set(client.name, held.get(client.name)! + 1);
      });

    test('requests that clients make beside their turns are answered', async () => {
      const { key } = await scene.customer();
      const { origin } = ground;
      const headers = { authorization: `Bearer ${key}`, 'anthropic-version': '2023-06-01' };
      const list = await fetch(`${origin}/v1/models?limit=1000`, { headers });
      const { data } = (await list.json()) as { data: { id: string; type: string }[] };
      assert.ok(data.some(({ id, type }) => id === clients[0]!.model && type === 'model'));
      const body = JSON.stringify({ model: clients[0]!.model, messages: [{ role: 'user', content: 'Count me' }] });
      const counted = await fetch(`${origin}/v1/messages/count_tokens?beta=true`, { method: 'POST', headers, body });
      assert.equal(counted.status, 200);
      assert.ok(((await counted.json()) as { input_tokens: number }).input_tokens > 0);
      assert.equal((await fetch(`${origin}/api/hello`, { method: 'HEAD' })).status, 200);
    });

    test('the ledger passes its audit at the end, and no request was noted twice', async () => {
      await scene.assertNoneCameLate();
      await ground.testbed.audit();
    });
  });
}

after(() => {
  // A run of one protocol, or a failed one, counts nothing.
  if ([...held.values()].some((count) => count < protocols.length)) return;
  const results = clients.map(({ name }) => ({
    what: `${name}${isFleet ? ', before a fleet of two' : ''}`,
    version: versionOf(name),
    counts: { asked: protocols.length, held: held.get(name)! },
  }));
  hold('clients', results, `npm run test:clients${isFleet ? ' -- --fleet' : ''}`);
});

const outcomesOf = ({ requests }: Turned) => requests.map(({ outcome }) => outcome.split('\n')[0]).join(' | ');
const replyOf = ({ finished, requests }: Turned) =>
  [finished.stdout, finished.stderr, ...requests.map(({ path, outcome }) => `${path}: ${outcome}`)].join('\n');

/** What the vendor was asked, and by way of which processes. */
function assertRequested(client: Client, protocol: ProtocolName, turned: Turned): void {
  const { requests, handed, upgrades } = turned;
  assert.ok(requests.length >= fewestOf(client) && requests.length <= mostRequests, replyOf(turned));
  assert.deepEqual(
    requests.filter(({ status }) => status !== 200),
    [],
  );
  assert.ok(!handed.includes(0), `the processes were handed ${handed} requests`);
  assert.equal(upgrades > 0, client.usesWebSocket);
  // What the model has signed comes back to it, through a client of another protocol too. Chat has no signatures.
  const isLost = isFleet && client.dropsSignatures === true;
  if (protocol !== 'chat' && !isLost && !client.edits)
    assert.ok(JSON.stringify(requests.at(-1)!.body).includes(signature));
  if (client.validates && protocol === 'gemini')
    for (const { body } of requests) assert.equal(body.toolConfig.functionCallingConfig.mode, 'VALIDATED');
}

/** One that calls a tool, and one with its result. */
const fewestOf = ({ edits }: Client) => (edits ? 1 : 2);

const operationOf = (protocol: ProtocolName) => (protocol === 'gemini' ? 'generate-content' : protocol);

/** Every request was answered at the first attempt, metered and, where it was the turn itself, streamed. */
function assertSettled(client: Client, { rows, requests, connecting }: Turned): void {
  assert.equal(rows.length, connecting + requests.length);
  for (const { status, outcome, attempts } of rows)
    assert.deepEqual({ status, outcome, attempts }, { status: 200, outcome: 'complete', attempts: 1 });
  const turns = rows.filter(
    ({ operation, model, streamed }) =>
      operation === operationOf(client.protocol) && model === client.model && streamed,
  );
  assert.ok(turns.length >= fewestOf(client), `${turns.length} of ${rows.length} requests are turns`);
  for (const { usage, usage_estimated } of turns) {
    assert.equal(usage_estimated, false);
    const { input, cached, output, reasoning } = reported;
    const { input: plain, cache_read, output: spoken, reasoning: thoughts } = usage!;
    assert.deepEqual([plain, cache_read, spoken, thoughts], [input - cached, cached, output - reasoning, reasoning]);
  }
}

interface Turned {
  readonly finished: Finished;
  readonly secret: string;
  /** What the file holds when the turn has ended. */
  readonly file: string;
  /** What the vendor was asked in the turn. */
  readonly requests: AgentVendor['requests'];
  /** How many requests `connect` made before it. */
  readonly connecting: number;
  /** Rows of the turn and of connecting. */
  readonly rows: readonly RequestRow[];
  /** Requests by process. */
  readonly handed: readonly number[];
  /** How many of them were upgrades to a WebSocket. */
  readonly upgrades: number;
}

interface Scene {
  customer(): Promise<Customer>;
  /** One turn of a client in a directory whose file holds a new secret, and what it left behind. */
  turn(client: Client): Promise<Turned>;
  /** After their turns, as long as others took theirs, accounts have no further rows. */
  assertNoneCameLate(): Promise<void>;
  close(): Promise<void>;
}

async function openScene(protocol: ProtocolName): Promise<Scene> {
  const directory = await mkdtemp(join(tmpdir(), 'client-work-'));
  const file = join(directory, 'note.txt');
  const vendor = await startAgentVendor(protocol, () => file);
  const { testbed } = ground;
  await ground.change(sectionsFor(protocol, vendor));
  const { key } = await testbed.customer();
  const headers = { authorization: `Bearer ${key}` };
  const listed = async () => (await fetch(`${ground.origin}/v1/models`, { headers })).text();
  await until('each gateway has the models of the vendor', async () => {
    const lists = [await listed(), await listed()];
    return lists.every((text) => text.includes(markOf(protocol)));
  });
  const asked = new Map<string, number>();
  return {
    customer: () => testbed.customer(),
    async turn(client) {
      const secret = `secret-${randomBytes(6).toString('hex')}`;
      await writeFile(file, `The word of the day is ${secret}.\n`);
      const { accountId, key } = await testbed.customer();
      const prompt = `Read the file ${file} and tell me what it says.`;
      vendor.requests.length = 0;
      let before = { handed: ground.handed, upgrades: 0, asked: 0 };
      const finished = await run(client, directory, { prompt, file, origin: ground.origin, key }, () => {
        before = { handed: [...ground.handed], upgrades: ground.upgrades(), asked: vendor.requests.length };
      });
      asked.set(accountId, vendor.requests.length);
      const rows = await until('the rows of the turn are written', async () => {
        const own = await rowsOf(accountId);
        return own.length >= vendor.requests.length && own;
      });
      const handed = ground.handed.map((count, index) => count - before.handed[index]!);
      const requests = vendor.requests.slice(before.asked);
      const upgrades = ground.upgrades() - before.upgrades;
      return {
        finished,
        secret,
        file: await readFile(file, 'utf8'),
        requests,
        connecting: before.asked,
        rows,
        handed,
        upgrades,
      };
    },
    async assertNoneCameLate() {
      for (const [accountId, count] of asked) assert.equal((await rowsOf(accountId)).length, count);
    },
    async close() {
      await vendor.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function rowsOf(accountId: string): Promise<readonly RequestRow[]> {
  const rows = await ground.testbed.rows<RequestRow>('requests');
  return rows.filter(({ account_id }) => account_id === accountId);
}

/** A model that is sold in front of this vendor alone. */
const markOf = (protocol: ProtocolName) => `before-${protocol}`;

/** Every model that the clients ask for by themselves is the vendor's one model. */
function sectionsFor(protocol: ProtocolName, vendor: AgentVendor): Record<string, unknown> {
  const names = [
    ...clients.map(({ model }) => model),
    'claude-haiku-4-5-20251001',
    'claude-haiku-5-5',
    markOf(protocol),
  ];
  const model = { ...modelAt(`vendor/${upstreamModel}`), context: '1M', max_output: '128k' };
  return {
    providers: { vendor: { keys: 'vendor-key', speaks: { [protocol]: vendor.base } } },
    models: Object.fromEntries(names.map((name) => [name, model])),
  };
}
