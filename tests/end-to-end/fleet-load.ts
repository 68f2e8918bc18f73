/** A small load on a fleet whose every answer is noted, and the three bills that must agree when it is over. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import type { RunningVendor } from '../../plugins/sandbox/vendor.ts';
import type { Fleet } from './fleet.ts';
import { type Customer, readReply, until } from './testbed.ts';

interface Answer {
  /** Index of the node that was asked. */
  readonly node: number;
  /** 0: the connection broke. */
  readonly status: number;
  readonly tookMs: number;
  /** What it said, if it was refused. */
  readonly text: string;
}

export interface Load {
  readonly answers: readonly Answer[];
  /** Answers of these nodes (of all, if none is named) that are not 200. */
  refused(...nodes: readonly number[]): Answer[];
  /** Waits until so many more answers have come. */
  more(count: number, withinMs?: number): Promise<void>;
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly workers?: number;
  readonly pauseMs?: number;
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly retryAfter?: string | null;
}

/** One chat call; a model of the sandbox that says so many tokens. */
export async function send(origin: string, { key }: Customer, tokens = 10): Promise<Reply> {
  const content = `[[sandbox: tokens=${tokens}]] Hello`;
  const answer = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox', messages: [{ role: 'user', content }], max_tokens: 60 }),
  }).catch(() => undefined);
  if (answer === undefined) return { status: 0, text: 'no connection' };
  const { status, text, broken } = await readReply(answer);
  const retryAfter = answer.headers.get('retry-after');
  return { status: broken ? 0 : status, text: status === 200 ? '' : text, retryAfter };
}

/** Each worker asks one node after the other, for one customer after the other. */
export function startLoad(
  fleet: Pick<Fleet, 'nodes'>,
  customers: readonly Customer[],
  options: LoadOptions = {},
): Load {
  const { workers = 4, pauseMs = 15 } = options;
  const answers: Answer[] = [];
  let running = true;
  const work = async (worker: number) => {
    for (let turn = 0; running; turn++) {
      const node = (worker + turn) % fleet.nodes.length;
      const startedAt = performance.now();
      const answer = await send(fleet.nodes[node]!.origin, customers[worker % customers.length]!, 1 + (turn % 40));
      answers.push({ node, ...answer, tookMs: performance.now() - startedAt });
      await pause(pauseMs);
    }
  };
  const done = Array.from({ length: workers }, (_, worker) => work(worker));
  return {
    answers,
    refused: (...nodes) =>
      answers.filter(({ node, status }) => status !== 200 && (nodes.length === 0 || nodes.includes(node))),
    async more(count, withinMs = 90_000) {
      const goal = answers.length + count;
      await until(`${count} more answers`, () => answers.length >= goal, withinMs);
    },
    async stop() {
      running = false;
      await Promise.all(done);
    },
  };
}

interface Totals {
  readonly calls: number;
  readonly estimated: number;
  readonly unknown: number;
  readonly input: number;
  readonly output: number;
}

/**
 * Waits until every call is in the ledger with its end, then compares: answers that clients have, the vendor's own bill
 * since it was reset, usage and ledger; and runs the audit.
 */
export async function assertBillsAgree(
  fleet: Fleet,
  customers: readonly Customer[],
  vendor: RunningVendor,
  load: Load,
): Promise<void> {
  const answered = load.answers.filter(({ status }) => status === 200).length;
  const accountIds = customers.map(({ accountId }) => sql`${accountId}`);
  const wanted = sql`account_id in (${sql.join(accountIds, sql`, `)})`;
  const read = () => readTotals(fleet, wanted);
  let records: Totals | undefined;
  await until(
    'all calls are in the ledger',
    async () => {
      const found = await read().catch(() => undefined);
      records = found === undefined || found.open > 0 || found.calls < answered ? undefined : found;
      return records !== undefined;
    },
    90_000,
  );
  const { calls, estimated, unknown, input, output } = records!;
  const bill = vendor.bill();
  const billed = bill.totals['sandbox'] ?? {};
  const said = JSON.stringify({ answered, records, bill: { requests: bill.requests, ...billed } });
  assert.deepEqual([estimated, unknown], [0, 0], said);
  assert.deepEqual([calls, calls], [answered, bill.requests], said);
  assert.deepEqual([input, output], [billed.input ?? 0, billed.output ?? 0], said);
  await fleet.runAsCommand((gateway) => gateway.audit());
}

async function readTotals(fleet: Fleet, wanted: ReturnType<typeof sql>): Promise<Totals & { readonly open: number }> {
  const [row] = await fleet.rows<Totals & { open: number }>(sql`
    select
      (select count(*)::int from ${fleet.table('calls')} where ${wanted} and settled) as calls,
      (select count(*)::int from ${fleet.table('calls')} where ${wanted} and estimated) as estimated,
      (select coalesce(sum((classes->>'input')::int), 0)::int from ${fleet.table('calls')} where ${wanted}) as input,
      (select coalesce(sum((classes->>'output')::int), 0)::int from ${fleet.table('calls')} where ${wanted}) as output,
      (select count(*)::int from ${fleet.table('calls')}, json_array_elements(${fleet.table('attempts_of')}(attempts, provider, target_model)) as attempt
        where ${wanted} and attempt->>'result' = 'unknown') as unknown,
      (select coalesce(sum(open), 0)::int from ${fleet.table('leases')} where ${wanted}) as open`);
  return row!;
}
