/** Nodes of a task store on one database, with vendors, files and crashes that tests decide on. */
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import { secret } from '../../../core/contract/secret.ts';
import { UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { openLedgerService } from '../../../plugins/billing/accounts/service.ts';
import { audit } from '../../../plugins/billing/audit/audit.ts';
import { AuthorizationStore } from '../../../plugins/billing/authorizations/authorizations.ts';
import { sqlStore } from '../../../plugins/billing/store.ts';
import type { Database, Orm } from '../../../plugins/common/domain/database.ts';
import type { Authorization } from '../../../plugins/common/domain/ledger.ts';
import type { Catalog, Model } from '../../../plugins/common/domain/models.ts';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import type { Files } from '../../../plugins/common/domain/stored-files.ts';
import type { Provider, Providers } from '../../../plugins/common/domain/upstreams.ts';
import { rowsOf } from '../../../plugins/common/kit/sql.ts';
import type { MediaAdapter, Order, Step } from '../../../plugins/common/media/adapters.ts';
import type { Adapters } from '../../../plugins/task-store/contract.ts';
import type { Tools } from '../../../plugins/task-store/engine/dependencies.ts';
import { Engine } from '../../../plugins/task-store/engine/engine.ts';
import type { TaskRows } from '../../../plugins/task-store/engine/rows.ts';
import { SqlTaskRows } from '../../../plugins/task-store/engine/sql-rows.ts';
import type { Vendors } from '../../../plugins/task-store/engine/vendor.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';

export const imagePrice = parseUsd('0.01');

/** How a vendor takes an order. */
export type Manner =
  | 'at once'
  | 'own task'
  | 'refuses content'
  | 'busy'
  | 'unreachable'
  | 'breaks off'
  | 'fails later'
  | 'stuck';

export interface VendorWorld {
  /** Accepted creations of each prompt. */
  readonly accepted: Map<string, number>;
  /** Images that the vendor charges for. */
  charged: number;
  manner(prompt: string, vendor: string): Manner;
  /** Runs when an order has come, before the answer. */
  onCreate?: (prompt: string) => Promise<void>;
  /** Runs before a vendor's task reports that it is done. */
  onPoll?: (prompt: string) => Promise<void>;
}

export const orderOf = (prompt: string, count = 1): Order => ({
  kind: 'image',
  model: 'painter',
  prompt,
  count,
  references: [],
  extra: {},
});

/** Words everything in JSON of its own, which the vendors below understand. */
const adapter: MediaAdapter = {
  name: 'fake-images',
  path: '/create',
  kind: 'image',
  needsBytes: false,
  mostPerCall: 10,
  create: ({ prompt, count }, target) => ({
    method: 'POST',
    path: '/create',
    body: { prompt, count, at: target.provider },
  }),
  readCreated: ({ json }) => json as Step,
  tasks: {
    poll: (id) => ({ method: 'GET', path: `/poll/${id}` }),
    readPolled: ({ json }) => json as Step,
  },
  bounds: ({ count }) => ({ inputTokens: 0, outputTokens: 0, images: count, seconds: 0, media: [] }),
};
const adapters: Adapters = new Map([[adapter.name, adapter]]);

const done = (count: number): Step => ({
  state: 'done',
  files: Array.from({ length: count }, (_, index) => ({ url: `https://vendor.example/${index}.png` })),
  made: { usage: { image: count }, estimated: false, media: [] },
});

function vendorsOf(world: VendorWorld): Vendors {
  return {
    async call({ path, body }, target) {
      if (path === '/create') {
        const { prompt, count } = body as { prompt: string; count: number };
        return { status: 200, json: await create(world, prompt, count, target.provider) };
      }
      const [, , id = ''] = path.split('/');
      const [manner, prompt, count] = Buffer.from(id, 'base64url').toString().split('|') as [Manner, string, string];
      if (manner === 'stuck') return { status: 200, json: { state: 'running', vendorId: id } };
      if (manner === 'fails later')
        return { status: 200, json: { state: 'failed', code: 'content_policy', message: 'no' } };
      await world.onPoll?.(prompt);
      return { status: 200, json: done(Number(count)) };
    },
    open: () => Promise.reject(new Error('these vendors stream nothing')),
    close: async () => {},
  };
}

async function create(world: VendorWorld, prompt: string, count: number, vendor: string): Promise<Step> {
  const manner = world.manner(prompt, vendor);
  const refusal = (status: number) =>
    new UpstreamRefusal(new GatewayError('overloaded', 'busy'), { status, retryAfterMs: 1_000 });
  if (manner === 'unreachable') throw new UpstreamError('connect', 'refused');
  if (manner === 'busy') throw refusal(429);
  if (manner === 'refuses content') return { state: 'failed', code: 'content_policy', message: 'not allowed' };
  world.accepted.set(prompt, (world.accepted.get(prompt) ?? 0) + 1);
  if (manner !== 'fails later') world.charged += count;
  await world.onCreate?.(prompt);
  if (manner === 'breaks off') throw new UpstreamError('sent', 'reset');
  if (manner === 'at once') return done(count);
  return { state: 'queued', vendorId: Buffer.from(`${manner}|${prompt}|${count}`).toString('base64url') };
}

/** A node that dies at its nth statement from now on, before or after that took effect, and says nothing any more. */
interface Fate {
  statements: number;
  after: boolean;
  dead: boolean;
}

function newFate(): Fate {
  return { statements: Number.POSITIVE_INFINITY, after: false, dead: false };
}

function mortal(orm: Orm, fate: Fate): Orm {
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    if (fate.dead) throw new Error('the node is dead');
    fate.statements -= 1;
    if (fate.statements > 0) return work();
    fate.dead = true;
    if (fate.after) await work();
    throw new Error('the node died');
  };
  return new Proxy(orm, {
    get(target, name) {
      if (name === 'execute')
        return (...given: Parameters<Orm['execute']>) => guarded(async () => target.execute(...given));
      if (name === 'transaction')
        return (...given: Parameters<Orm['transaction']>) => guarded(async () => target.transaction(...given));
      return Reflect.get(target, name);
    },
  });
}

export interface Node {
  readonly tools: Tools;
  readonly engine: Engine;
  readonly fate: Fate;
  order(id: string, order: Order, callbackUrl?: string): Promise<void>;
}

type NodeOptions = Partial<Tools['timing']> & { workers?: number; wakes?: boolean };

/** Takes due tasks in `turn` alone: none is at work unseen when a test ends every lease. */
class SteppedEngine extends Engine {
  override wake(): void {}
}

export interface Testbed {
  readonly database: TestDatabase;
  readonly rows: TaskRows;
  /** `wakes`: it takes due tasks whenever one has ended, as in truth; otherwise in `turn` alone. */
  node(options?: NodeOptions): Node;
  credit(amount: string): Promise<void>;
  balance(): Promise<bigint>;
  /** Every lease runs out, and everything is due. */
  timePasses(): Promise<void>;
  /** Moves the wall clock of the nodes, in either direction; the database's goes on. */
  jump(milliseconds: number): void;
  /** The deadline of every task is now. */
  deadlinesPass(): Promise<void>;
  states(): Promise<Record<string, string>>;
  /** How each call ended and which ledger rows it has, by state of its task. */
  ends(): Promise<{ id: string; state: string; settled: boolean[]; kinds: string[] | null }[]>;
  violations(): Promise<unknown[]>;
}

const painter: Model = {
  id: 'painter',
  ownedBy: 'tests',
  created: 0,
  displayName: 'Painter',
  kind: 'image',
  targets: [
    { provider: 'first', model: 'p1', weight: 0 },
    { provider: 'second', model: 'p2', weight: 0 },
  ],
  contextTokens: undefined,
  maxOutputTokens: undefined,
  prices: flatBook({ image: imagePrice }, 'v1'),
};

const provider = (name: string): Provider => ({
  name,
  speaks: { 'fake-images': `https://${name}.example` },
  traits: {
    auth: undefined,
    headers: {},
    dropFields: {},
    streamUsageOption: false,
    connectTimeoutMs: 1_000,
    firstByteTimeoutMs: 1_000,
    idleTimeoutMs: 1_000,
    clientLeft: 'abort',
  } as unknown as Provider['traits'],
});

function providersOf(): Providers {
  const known = [provider('first'), provider('second')];
  const key = secret('key');
  return {
    find: (name) => known.find((each) => each.name === name),
    list: () => known,
    acquireKey: (name, _model, except) =>
      except?.has(`${name}#1`) === true ? { retryAfterMs: 1_000 } : { key, credential: `${name}#1` },
    findKey: () => ({ key, restsMs: 0 }),
    coolDown: () => {},
  };
}

function filesOf(): Files {
  const kept = new Map<string, string>();
  return {
    ensureRoom: async () => {},
    expiries: async (ids) => new Map(ids.filter((id) => kept.has(id)).map((id) => [id, Date.parse('2100-01-01')])),
    async keep(_content, kind, { taskId, number }) {
      const id = `file_${taskId}_${number}`;
      kept.set(id, kind);
      return { id, mediaType: kind === 'image' ? 'image/png' : 'video/mp4', bytes: 1, expiresAt: 0 };
    },
    find: async () => undefined,
    read: async (_account, id) => (kept.has(id) ? Buffer.from(id) : undefined),
    answer: async () => ({ status: 200, headers: {}, body: '' }),
    address: (id) => `http://127.0.0.1/files/${id}`,
    removeFilesOfTask: async () => {},
    removeOfAccount: async () => {},
  };
}

const catalogOf: Catalog = { find: (id) => (id === 'painter' ? painter : undefined), list: () => [painter] };

export async function openTestbed(world: VendorWorld): Promise<Testbed> {
  const database = await openDatabase({ pool: 10, plugins: ['billing', 'task-store'] });
  let jumpedMs = 0;
  const host = { ...fakeHost(), clock: { now: () => Date.now() + jumpedMs, monotonic: () => performance.now() } };
  const files = filesOf();
  const table = (name: string) => sql`${sql.identifier(database.schema)}.${sql.identifier(name)}`;
  const ledgerService = openLedgerService({ host, database, store: sqlStore(database), runtime: () => undefined });
  let requests = 0;
  let nodes = 0;
  const rows = new SqlTaskRows(database);

  function node({ workers = 4, wakes = false, ...timing }: NodeOptions = {}): Node {
    const fate = newFate();
    const store: Database = { ...database, orm: mortal(database.orm, fate) };
    const nodeHost = { ...fakeHost(), clock: host.clock };
    nodeHost.random.bytes(++nodes);
    const authorizations = new AuthorizationStore(
      nodeHost,
      openLedgerService({ host: nodeHost, database: store, store: sqlStore(store), runtime: () => undefined }).changes,
    );
    const tools: Tools = {
      store,
      rows: new SqlTaskRows(store),
      authorizations: authorizations,
      files,
      catalog: catalogOf,
      providers: providersOf(),
      health: () => undefined,
      adapters,
      vendors: vendorsOf(world),
      withBytes: async (order) => order,
      clock: host.clock,
      random: nodeHost.random,
      log: nodeHost.log,
      timing: {
        leaseMs: 60_000,
        deadlineMs: { image: 600_000, video: 600_000 },
        reconcileMs: 0,
        pollMs: 1,
        longestPollMs: 5,
        retryMs: 1,
        longestRetryMs: 5,
        ...timing,
      },
    };
    return {
      tools,
      fate,
      engine: wakes ? new Engine(tools, workers) : new SteppedEngine(tools, workers),
      async order(id, order, callbackUrl) {
        const deposit: Authorization = authorizations.offer({
          id: `00000000-0000-7000-8000-${String(++requests).padStart(12, '0')}`,
          accountId: 'alice',
          keyId: 'key',
          model: 'painter',
          prices: painter.prices![0]!,
          at: Date.now(),
          context: {},
          ratio: { numerator: 1n, denominator: 1n },
          inputTokens: 0,
          outputTokens: 0,
          allowance: { tools: 0, images: order.count, seconds: 0 },
          entry: painter,
        });
        const owner = { requestId: deposit.id, accountId: 'alice', keyId: 'key' };
        const deadlineMs = tools.timing.deadlineMs.image;
        await deposit.place((orm) => tools.rows.insert(orm, { id, ...owner, order, callbackUrl, deadlineMs }));
      },
    };
  }

  return {
    database,
    rows,
    node,
    async credit(amount) {
      const entry = { kind: 'top-up', reason: 'test', reference: `${database.schema}-${Math.random()}` };
      await ledgerService.ledger.credit('alice', parseUsd(amount), entry);
    },
    balance: () => ledgerService.ledger.balance('alice'),
    jump(milliseconds) {
      jumpedMs += milliseconds;
    },
    async deadlinesPass() {
      await database.orm.execute(sql`update ${table('tasks')} set deadline_at = now()`);
    },
    async timePasses() {
      await database.orm.execute(
        sql`update ${table('tasks')} set lease_until = null, due_at = now() where due_at is not null`,
      );
    },
    async states() {
      const found = await rowsOf<{ id: string; state: string }>(
        database.orm,
        sql`select id, state from ${table('tasks')}`,
      );
      return Object.fromEntries(found.map(({ id, state }) => [id, state]));
    },
    ends: () =>
      rowsOf(
        database.orm,
        sql`select tasks.id, state, (select array_agg(settled) from ${table('calls')} as calls where calls.id = tasks.request_id) as settled,
              (select array_agg(ledger.kind order by seq) from ${table('movements')} as ledger
                where ledger.request_id = tasks.request_id) as kinds
            from ${table('tasks')} as tasks order by tasks.id`,
      ),
    async violations() {
      return (await audit(database.orm, database.schema)).violations;
    },
  };
}

/** Works until nothing is due any more, however long things take in truth. */
export async function workOff(testbed: Testbed, node: Node, rounds = 60): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await testbed.timePasses();
    await settleTurn(node);
    const open = Object.values(await testbed.states()).filter(
      (state) => !['completed', 'failed', 'cancelled'].includes(state),
    );
    if (open.length === 0) return;
  }
}

/** One taking, and the end of what was taken. */
export async function settleTurn(node: Node): Promise<void> {
  await node.engine.turn().catch(() => {});
  while (node.engine.active > 0) await new Promise((resolve) => setTimeout(resolve, 2));
}
