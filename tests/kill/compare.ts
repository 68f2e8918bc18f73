/** Holds clients, vendor and ledger against each other. */
import { sql } from 'drizzle-orm';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { database, type Orm } from '../../plugins/common/domain/database.ts';
import type { BulkCharge, Findings } from './batches.ts';
import type { Acknowledged } from './clients.ts';
import type { ToolCharge } from './tools.ts';

interface Charge {
  readonly accountId: string;
  readonly requestId: string;
  readonly estimated: boolean;
  readonly classes: Readonly<Record<string, number>>;
}

/** A task as the ledger has it. */
interface TaskEnd {
  readonly id: string;
  readonly state: string;
  /** Whether it was charged, once for each of its calls that have ended. */
  readonly ends: readonly boolean[];
  readonly seconds: number | null;
}

/** A response of a realtime session. */
export interface VoiceCharge {
  readonly upstreamId: string;
  readonly estimated: boolean;
  readonly tokens: number;
}

export interface Charges {
  /** Charges of calls; those of tasks are with their tasks. */
  readonly charges: readonly Charge[];
  readonly voices?: readonly VoiceCharge[];
  readonly bulk?: readonly BulkCharge[];
  readonly tools?: readonly ToolCharge[];
  readonly tasks: readonly TaskEnd[];
  /** Requests that were sent and voided because their outcome is unknown. */
  readonly unknown: number;
  readonly auditViolations: readonly unknown[];
  /** Authorizations that have not ended, and leases that were not returned. */
  readonly left: number;
}

/** Reads the ledger of a gateway that has stopped, and runs its audit. */
export async function readCharges(file: string): Promise<Charges> {
  const gateway = await boot(file, { mode: 'command', log: createLog('silent') });
  const { orm, schema } = gateway.find(database)!;
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const rows = (await orm.execute(
    sql`select account_id, case when model = 'relayed' then coalesce(upstream_id, id::text) else id::text end as id, estimated, classes
      from ${table('calls')} where settled and model not in ('film', 'voice', 'bulk', 'marks__mark')`,
  )) as unknown as {
    account_id: string;
    id: string;
    estimated: boolean;
    classes: Record<string, number>;
  }[];
  const voices = (await orm.execute(
    sql`select upstream_id, estimated, classes from ${table('calls')} where settled and model = 'voice'`,
  )) as unknown as { upstream_id: string | null; estimated: boolean; classes: Record<string, number> }[];
  const bulk = (await orm.execute(
    sql`select estimated, classes from ${table('calls')} where settled and model = 'bulk'`,
  )) as unknown as { estimated: boolean; classes: Record<string, number> }[];
  const tools = (await orm.execute(
    sql`select id::text as id, account_id, settled, estimated from ${table('calls')} where model = 'marks__mark' and
      (settled or exists (select from json_array_elements(${table('attempts_of')}(attempts, provider, target_model)) as attempt where attempt->>'result' = 'unknown'))`,
  )) as unknown as { id: string; account_id: string; settled: boolean; estimated: boolean }[];
  const [unknown] = (await orm.execute(
    sql`select count(*)::int as count from ${table('calls')}, json_array_elements(${table('attempts_of')}(attempts, provider, target_model)) as attempt
      where attempt->>'result' = 'unknown' and attempt->>'provider' in ('vendor', 'relayed')`,
  )) as unknown as { count: number }[];
  const tasks = await tasksIn(orm, schema);
  const [open] = (await orm.execute(
    sql`select (select count(*)::int from ${table('deposits')}) + (select count(*)::int from ${table('leases')}) as count`,
  )) as unknown as { count: number }[];
  const audit = gateway.commands.find((command) => command.name === 'audit')!;
  const report = (await audit.run({})).json as { violations: unknown[] };
  await gateway.stop(0);
  return {
    charges: rows.map((row) => ({
      accountId: row.account_id,
      requestId: row.id,
      estimated: row.estimated,
      classes: row.classes,
    })),
    voices: voices.map(({ upstream_id: id, estimated, classes }) => ({
      upstreamId: id ?? '',
      estimated,
      tokens: Object.values(classes).reduce((sum, count) => sum + count, 0),
    })),
    bulk: bulk.map(({ estimated, classes }) => ({
      estimated,
      tokens: Object.values(classes).reduce((sum, count) => sum + count, 0),
    })),
    tools: tools.map(({ id, account_id: accountId, settled, estimated }) => ({
      ...{ requestId: id, accountId, isCharged: settled, isEstimated: estimated },
    })),
    tasks: tasks.map((task) => ({ ...task, ends: task.ends ?? [] })),
    unknown: unknown!.count,
    auditViolations: report.violations,
    left: open!.count,
  };
}

/** Empty where the gateway takes no orders. */
async function tasksIn(orm: Orm, schema: string): Promise<TaskEnd[]> {
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const [found] = (await orm.execute(
    sql`select to_regclass(${`"${schema}".tasks`}) is not null as there`,
  )) as unknown as { there: boolean }[];
  if (found?.there !== true) return [];
  const rows = await orm.execute(sql`
    select id, state,
      (select json_agg(settled) from ${table('calls')} as calls where calls.id = tasks.request_id) as ends,
      (select (classes->>'second')::int from ${table('calls')} as calls where calls.id = tasks.request_id) as seconds
    from ${table('tasks')} as tasks`);
  return rows as unknown as TaskEnd[];
}

export interface Bill {
  readonly requests: number;
  readonly totals: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export interface Evidence {
  readonly acknowledged: readonly Acknowledged[];
  readonly bill: Bill;
  readonly charges: Charges;
  /** Requests that their clients broke off. */
  readonly cancelled?: number;
  /** Absent: no videos were ordered. */
  readonly films?: {
    readonly taken: ReadonlySet<string>;
    /** Tasks that a client asked to delete: those may be gone. */
    readonly deletable?: ReadonlySet<string>;
    readonly cancelled: number;
    readonly unfinished: readonly string[];
    readonly bill: Bill;
  };
  /** What is charged to these accounts was asked for under so many Idempotency-Keys. */
  readonly keyed: { readonly accountIds: ReadonlySet<string>; readonly sent: number; readonly lost: number };
}

export function compare(evidence: Evidence): Findings {
  const [calls, films] = [compareCalls(evidence), compareFilms(evidence)];
  return {
    account: [...calls.account, ...films.account],
    violations: [...calls.violations, ...films.violations],
  };
}

/** Every task ends once, and what is charged for videos is no more than the studio has billed. */
function compareFilms({ charges: { tasks }, films }: Evidence): Findings {
  if (films === undefined) return { account: [], violations: [] };
  const { taken, deletable, cancelled, unfinished, bill } = films;
  const violations = unfinished.map((id) => `the task ${id} has not ended`);
  const known = new Set(tasks.map(({ id }) => id));
  for (const id of taken)
    if (!known.has(id) && deletable?.has(id) !== true)
      violations.push(`the task ${id} was given to a client and is not there`);
  for (const { id, state, ends } of tasks)
    if (ends.length !== 1) violations.push(`the task ${id} (${state}) has ended in ${ends.length} rows`);
  const paid = tasks.filter(({ ends }) => ends.includes(true));
  const seconds = paid.reduce((sum, task) => sum + (task.seconds ?? 0), 0);
  const billed = Object.values(bill.totals).reduce((sum, usage) => sum + (usage['second'] ?? 0), 0);
  if (paid.length > bill.requests)
    violations.push(`${paid.length} videos were charged, the studio made ${bill.requests}`);
  if (seconds > billed) violations.push(`${seconds} s of video were charged, the studio billed ${billed} s`);
  const account = [
    `${tasks.length} videos were ordered, ${taken.size} of them acknowledged, ${cancelled} cancelled or deleted; ${paid.length} were charged (${seconds} s), the studio billed ${bill.requests} (${billed} s)`,
  ];
  return { account, violations };
}

function compareCalls({ acknowledged, bill, charges, keyed, cancelled = 0 }: Evidence): Findings {
  const violations: string[] = [];
  const byId = new Map<string, Charge>();
  for (const charge of charges.charges) {
    if (byId.has(charge.requestId)) violations.push(`${charge.requestId} was charged twice`);
    byId.set(charge.requestId, charge);
  }
  let settledByEstimate = 0;
  for (const answer of acknowledged) {
    const charge = byId.get(answer.requestId);
    if (charge === undefined) violations.push(`${answer.requestId} was answered and never charged`);
    else if (charge.estimated) {
      settledByEstimate++;
      violations.push(`${answer.requestId} was answered whole and charged by an estimate`);
    } else if (input(charge) !== answer.promptTokens || output(charge) !== answer.completionTokens) {
      violations.push(
        `${answer.requestId} was charged for ${input(charge)} + ${output(charge)} tokens, the client got ${answer.promptTokens} + ${answer.completionTokens}`,
      );
    }
  }
  const exact = charges.charges.filter(({ estimated }) => !estimated);
  const estimated = charges.charges.length - exact.length;
  const billed = Object.values(bill.totals).reduce(
    (sum, usage) => sum + input({ classes: usage }) + output({ classes: usage }),
    0,
  );
  const charged = exact.reduce((sum, charge) => sum + input(charge) + output(charge), 0);
  if (exact.length > bill.requests)
    violations.push(`${exact.length} exact charges for ${bill.requests} requests that the vendor ran`);
  if (bill.requests > exact.length + estimated + charges.unknown) {
    violations.push(
      `the vendor ran ${bill.requests} requests, the ledger has ${exact.length + estimated + charges.unknown}`,
    );
  }
  if (charged > billed) violations.push(`${charged} tokens were charged exactly, the vendor billed ${billed}`);
  const keyedCharges = charges.charges.filter(({ accountId }) => keyed.accountIds.has(accountId)).length;
  if (keyedCharges > keyed.sent)
    violations.push(`${keyedCharges} charges for ${keyed.sent} Idempotency-Keys: some were charged more than once`);
  if (charges.left > 0) violations.push(`${charges.left} authorizations or leases are left`);
  for (const violation of charges.auditViolations) violations.push(`audit: ${JSON.stringify(violation)}`);
  const account = [
    `clients hold ${acknowledged.length} whole answers; each was charged once, ${settledByEstimate} of them by estimate; clients broke ${cancelled} requests off`,
    `${keyed.sent} Idempotency-Keys were charged ${keyedCharges} times; the answers of ${keyed.lost} went with a crash`,
    `the vendor billed ${bill.requests} requests and ${billed} tokens`,
    `the ledger charged ${exact.length} requests exactly (${charged} tokens) and ${estimated} that were cut by estimate; ${charges.unknown} attempts ended unknown`,
    `${Math.max(0, exact.length + estimated + charges.unknown - bill.requests)} charges or attempts are of requests that the vendor does not know`,
  ];
  return { account, violations };
}

function input({ classes }: Pick<Charge, 'classes'>): number {
  return (
    (classes['input'] ?? 0) +
    (classes['cache_read'] ?? 0) +
    (classes['cache_write_5m'] ?? 0) +
    (classes['cache_write_1h'] ?? 0)
  );
}

function output({ classes }: Pick<Charge, 'classes'>): number {
  return (classes['output'] ?? 0) + (classes['reasoning'] ?? 0);
}
