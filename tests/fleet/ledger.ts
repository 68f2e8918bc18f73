/** Reads the ledger of a fleet that serves no more, and holds them against what clients and vendor say. */
import { sql } from 'drizzle-orm';
import type { Fleet } from '../end-to-end/fleet.ts';
import { type CallRow, type Evidence, judge } from './judge.ts';
import type { Operations } from './operations.ts';

export interface Findings {
  readonly account: readonly string[];
  readonly violations: readonly string[];
}

/** `codes`: so many were redeemed. */
export async function compareLedger(
  fleet: Fleet,
  operations: Operations,
  codes: number,
  evidence: Evidence,
): Promise<Findings> {
  const rows = await fleet.rows<CallRow>(sql`
    select id, account_id as "accountId", model, target_model as "targetModel", settled, estimated, classes, upstream_id as "upstreamId",
      price_version as "priceVersion", extract(epoch from held_at)::float8 * 1000 as "heldAt",
      ${fleet.table('attempts_of')}(attempts, provider, target_model) as attempts
    from ${fleet.table('calls')} order by id`);
  const { account, violations } = judge(rows, evidence);
  return {
    account: [
      ...account,
      `${operations.tasks.size} videos and ${operations.batches.size} batches were acknowledged and have ended, ${codes} codes were redeemed once each`,
    ],
    violations: [
      ...violations,
      ...(await ofTasks(fleet, operations)),
      ...(await ofMoneyIn(fleet, codes)),
      ...(await leftIn(fleet)),
      ...(await audit(fleet)),
      ...operations.wrong,
    ],
  };
}

async function ofTasks(fleet: Fleet, operations: Operations): Promise<string[]> {
  const rows = await fleet.rows<{ id: string; state: string; ends: number }>(sql`
    select id, state, (select count(*)::int from ${fleet.table('calls')} as calls where calls.id = tasks.request_id) as ends
    from ${fleet.table('tasks')} as tasks`);
  const known = new Set(rows.map(({ id }) => id));
  return [
    ...[...operations.tasks]
      .filter((id) => !known.has(id))
      .map((id) => `the task ${id} was acknowledged and is not there`),
    ...rows.filter(({ ends }) => ends !== 1).map(({ id, state, ends }) => `the task ${id} (${state}) has ${ends} ends`),
  ];
}

/** Each code that a client knows to be redeemed, or tried until it was, is one credit. */
async function ofMoneyIn(fleet: Fleet, codes: number): Promise<string[]> {
  const rows = await fleet.rows<{ reference: string }>(sql`
    select detail->>'reference' as reference from ${fleet.table('ledger')} where kind = 'CREDIT' and detail->>'kind' = 'code'`);
  const references = new Set(rows.map(({ reference }) => reference));
  if (rows.length === codes && references.size === rows.length) return [];
  return [`${codes} codes were redeemed, ${rows.length} credits of ${references.size} codes are there`];
}

async function leftIn(fleet: Fleet): Promise<string[]> {
  const [left] = await fleet.rows<{ deposits: number; leases: number }>(sql`
    select (select count(*)::int from ${fleet.table('deposits')}) as deposits, (select count(*)::int from ${fleet.table('leases')}) as leases`);
  const { deposits, leases } = left!;
  return deposits + leases === 0 ? [] : [`${deposits} authorizations and ${leases} leases are left`];
}

async function audit(fleet: Fleet): Promise<string[]> {
  const { json } = await fleet.runAsCommand(({ gateway: { gateway } }) =>
    gateway.commands.find(({ name }) => name === 'audit')!.run({}),
  );
  return (json as { violations: object[] }).violations.map((violation) => `audit: ${JSON.stringify(violation)}`);
}
