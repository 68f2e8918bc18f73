/** A gateway before stand-ins of vendors' batch APIs, with a customer who has money. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { systemClock } from '../../../../core/gateway/system.ts';
import { BatchRows } from '../../../../plugins/batches/rows.ts';
import { accounts } from '../../../../plugins/common/domain/accounts.ts';
import { database } from '../../../../plugins/common/domain/database.ts';
import { ledger, pool } from '../../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../../plugins/common/domain/money.ts';
import { rowsOf } from '../../../../plugins/common/kit/sql.ts';
import { startGateway, type TestGateway } from '../../../helpers/gateway.ts';
import { until } from '../../../helpers/until.ts';
import { contentRoutes } from './content-vendor.ts';
import { fileRoutes } from './file-vendor.ts';
import { messageRoutes } from './message-vendor.ts';
import { BatchVendor, used } from './stand-in.ts';

/** What a line costs its client, and the operator, in nano-USD: both at half price, as the vendor's batch is. */
export const lineCost = BigInt(used.input * 1_000 + used.output * 2_000) / 2n;
export const lineOwn = BigInt(used.input * 800 + used.output * 1_600) / 2n;
/** What the same costs as a call. */
export const callCost = lineCost * 2n;

export const gatewayFile = (vendor: string, head: string) => `
${head}
log: debug
plugins: [storage, request-log, files, auth, plans, rate-limit, providers, models, idempotency, billing, route, protocol-convert, uploads, batches]
plans: { default: free, offers: { free: { price: 0, limits: { rpm: 3 } } } }
rate-limit: { endpoints: [chat, messages, generate-content] }
providers:
  vendor:
    keys: key
    speaks: { chat: "${vendor}/v1", messages: "${vendor}", gemini: "${vendor}/v1beta" }
    dialect: { chat: { batches: native }, messages: { batches: native }, gemini: { batches: native } }
models:
  m:
    owned_by: vendor
    targets: [vendor/real]
    context: 100k
    max_output: 100
    price: { input: 1, output: 2, service: { batch: 0.5 } }
    cost: { input: 0.8, output: 1.6, service: { batch: 0.5 } }
  plain: { owned_by: vendor, targets: [{ provider: vendor, model: real, traits: { batches: calls } }], context: 100k, max_output: 100, price: { input: 1, output: 2 } }
  served: { owned_by: vendor, targets: [vendor/real], context: 90k, max_output: 100, price: { input: 1, output: 2, service: { batch: 0.5 } }, instead: { context_length: large-alias, unavailable: [large-alias] } }
  large: { owned_by: vendor, aliases: [large-alias], targets: [{ provider: vendor, model: real, traits: { batches: calls } }], context: 900k, max_output: 100, price: { input: 3, output: 6 } }
batches: { lease: 2s, native: { poll: 50ms, settle: 200ms } }
`;

interface OpenAiBatch {
  readonly id: string;
  readonly input_file_id: string;
  readonly status: string;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
}

interface ResultLine {
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly body: Record<string, never>;
  } | null;
  readonly error: { readonly code: string } | null;
}

export const chatLine = (id: string, text = id, model = 'm') =>
  JSON.stringify({
    custom_id: id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model, max_tokens: 50, messages: [{ role: 'user', content: text }] },
  });

const contentEndpoint = '/v1beta/models/m:generateContent';
export const contentLine = (id: string, text = id) =>
  JSON.stringify({
    ...{ custom_id: id, method: 'POST', url: contentEndpoint },
    body: { contents: [{ role: 'user', parts: [{ text }] }], generationConfig: { maxOutputTokens: 50 } },
  });

/** No client orders such a batch by a file: the gateway's own form of it. */
export async function orderContents(
  { gateway, account, keyId, client, skip }: World,
  lines: readonly string[],
): Promise<string> {
  const id = `batch_${lines.length}${Math.floor(performance.now())}`;
  const batch = {
    ...{
      id,
      accountId: account.id,
      keyId,
      remoteAddress: '127.0.0.1',
      dialect: 'chat' as const,
      endpoint: contentEndpoint,
      headers: {},
    },
    ...{ inputFile: await client.upload(lines), metadata: undefined, windowMs: 60_000, outputLifetimeMs: undefined },
  } as const;
  assert.ok(await new BatchRows(gateway.find(database)!).create(batch, 100));
  // As one of another process, which is found this late.
  skip(10_000);
  return id;
}

export interface Testbed {
  /** A new customer, and a vendor that has seen nothing. */
  open(usd?: string): Promise<World>;
  stop(): Promise<void>;
}

export type World = Awaited<ReturnType<typeof openWorld>>;

/** One gateway and one vendor for the tests of a file. `edited`: its file as they need it. */
export async function startTestbed(edited: (file: string) => string = (file) => file): Promise<Testbed> {
  const vendor = new BatchVendor();
  vendor.add([...fileRoutes(vendor), ...messageRoutes(vendor), ...contentRoutes(vendor)]);
  await vendor.start();
  let skippedMs = 0;
  const clock = { now: systemClock.now, monotonic: () => systemClock.monotonic() + skippedMs };
  const file = edited(gatewayFile(vendor.origin, 'gateway: test\nlisten: 127.0.0.1:0'));
  const running = await startGateway(file, { clock });
  const skip = (ms: number) => {
    skippedMs += ms;
  };
  let customers = 0;
  return {
    open(usd = '10') {
      vendor.reset();
      customers += 1;
      return openWorld({ vendor, running, skip }, `customer-${customers}`, usd);
    },
    async stop() {
      await running.stop();
      vendor.close();
    },
  };
}

interface Ground {
  readonly vendor: BatchVendor;
  readonly running: TestGateway;
  /** Lets time pass for the gateway that nothing waits for. */
  readonly skip: (ms: number) => void;
}

async function openWorld({ vendor, running, skip }: Ground, name: string, usd: string) {
  const { gateway, origin } = running;
  const account = await gateway.find(accounts)!.create(name, 'free');
  const grant = { kind: 'manual', reason: 'test', reference: name };
  await gateway.find(ledger)!.credit(account.id, parseUsd(usd), grant);
  const { key, id: keyId } = await gateway.find(accounts)!.createKey(account.id, { name });
  const client = new Client(origin, key);
  const command = async (name: string, values: Record<string, string>) =>
    (await gateway.commands.find((one) => one.name === name)!.run(values)).json;
  return {
    ...{ vendor, running, gateway, account, keyId, client, skip },
    /** Its window ends now. */
    async expire(id: string) {
      const { orm, schema } = gateway.find(database)!;
      await orm.execute(
        sql`update ${sql.identifier(schema)}.batches set expires_at = now(), due_at = now() where id = ${id}`,
      );
    },
    held: async () => (await gateway.find(pool)!.view(account.id)).held,
    /** The request log's row of one line. */
    async request(id: string) {
      const row = await until('its row is written', () => command('requests show', { id }).catch(() => undefined));
      const { status, outcome, provider, usage } = row as RequestRow;
      return { status, outcome, provider, usage };
    },
    /** The request log's model, and its timeline as text. */
    async modelOf(id: string) {
      const row = await until('its row is written', () => command('requests show', { id }).catch(() => undefined));
      return { model: (row as { model?: string }).model, timeline: JSON.stringify(row) };
    },
    /** One of two lines is charged by its vendor's report, and that of the other is impossible. */
    async checkLies() {
      const { orm, schema } = gateway.find(database)!;
      const rows = await rowsOf<ChargedRow>(
        orm,
        sql`select cost, held, estimated, attempts from ${sql.identifier(schema)}.calls where account_id = ${account.id} order by estimated`,
      );
      assert.deepEqual(
        rows.map(({ estimated }) => estimated),
        [false, true],
      );
      const [honest, lying] = rows;
      assert.equal(BigInt(honest!.cost), lineCost);
      assert.ok(BigInt(lying!.cost) > 0n && BigInt(lying!.cost) <= BigInt(lying!.held), String(lying!.cost));
      assert.match(JSON.stringify(lying!.attempts), /4000000000/);
      await this.settled(lineCost + BigInt(lying!.cost), 2);
    },
    balance: () => gateway.find(ledger)!.balance(account.id),
    /** The audit is clean, nothing is held, and the account has paid for what the vendor has made, at these prices. */
    async settled(spent: bigint, calls?: number) {
      assert.deepEqual(vendor.faults, []);
      assert.deepEqual(((await command('audit', {})) as { violations: unknown[] }).violations, []);
      const { rows } = (await command('ledger', { account: account.id, limit: '1000' })) as { rows: LedgerRow[] };
      const charges = rows.filter(({ kind }) => kind === 'CHARGE');
      if (calls !== undefined) assert.equal(charges.length, calls);
      assert.equal((await gateway.find(pool)!.view(account.id)).held, 0n);
      assert.equal(parseUsd(usd) - (await gateway.find(ledger)!.balance(account.id)), spent);
      return charges;
    },
  };
}

interface RequestRow {
  readonly usage: object | null | undefined;
  readonly status: number;
  readonly outcome: string;
  readonly provider: string | undefined;
}

type ChargedRow = {
  readonly cost: string;
  readonly held: string;
  readonly estimated: boolean;
  readonly attempts: unknown;
};

interface LedgerRow {
  readonly kind: string;
  readonly detail: { readonly estimated?: boolean };
}

/** A client of batches of files. */
export class Client {
  readonly #origin: string;
  readonly #key: string;

  constructor(origin: string, key: string) {
    this.#origin = origin;
    this.#key = key;
  }

  async call(method: string, path: string, body?: FormData | object): Promise<Response> {
    const isForm = body instanceof FormData;
    const headers = {
      authorization: `Bearer ${this.#key}`,
      ...(isForm || body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const content = body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) };
    for (let tries = 0; ; tries++) {
      const answer = await fetch(`${this.#origin}${path}`, { method, headers, ...content }).catch(() => undefined);
      if (answer?.ok === true) return answer;
      if (tries > 600) throw new Error(`${method} ${path}: ${answer?.status} ${await answer?.text()}`);
      await pause(100);
    }
  }

  async upload(lines: readonly string[]): Promise<string> {
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([lines.join('\n')]), 'input.jsonl');
    return ((await (await this.call('POST', '/v1/files', form)).json()) as { id: string }).id;
  }

  async order(lines: readonly string[]): Promise<string> {
    const order = {
      input_file_id: await this.upload(lines),
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    };
    return ((await (await this.call('POST', '/v1/batches', order)).json()) as { id: string }).id;
  }

  async batch(id: string): Promise<OpenAiBatch> {
    return (await (await this.call('GET', `/v1/batches/${id}`)).json()) as OpenAiBatch;
  }

  async cancel(id: string): Promise<void> {
    await this.call('POST', `/v1/batches/${id}/cancel`, {});
  }

  async ended(id: string): Promise<OpenAiBatch & { readonly lines: Map<string, ResultLine> }> {
    for (;;) {
      const batch = await this.batch(id);
      if (['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) {
        const lines = [...(await this.lines(batch.output_file_id)), ...(await this.lines(batch.error_file_id))];
        assert.equal(new Set(lines.map((line) => line.custom_id)).size, lines.length, 'a line has two ends');
        return { ...batch, lines: new Map(lines.map((line) => [line.custom_id, line])) };
      }
      await pause(50);
    }
  }

  async lines(file: string | null): Promise<ResultLine[]> {
    if (file === null) return [];
    const text = await (await this.call('GET', `/v1/files/${file}/content`)).text();
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as ResultLine);
  }
}
