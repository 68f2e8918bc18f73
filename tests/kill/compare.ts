/** Holds clients, vendor and ledger against each other. */
import { sql } from 'drizzle-orm';
import { boot } from '../../core/boot.ts';
import { createLog } from '../../core/log.ts';
import { database } from '../../core/vocabulary.ts';
import type { Acknowledged } from './clients.ts';

export interface Charge {
  readonly accountId: string;
  readonly requestId: string;
  readonly estimated: boolean;
  readonly classes: Readonly<Record<string, number>>;
}

export interface Charges {
  readonly charges: readonly Charge[];
  /** Requests that were sent and voided because their outcome is unknown. */
  readonly unknown: number;
  readonly auditViolations: readonly unknown[];
  readonly openHolds: number;
}

/** Reads the books of a gateway that has stopped, and runs its audit. */
export async function readCharges(file: string): Promise<Charges> {
  const desk = await boot(file, { mode: 'command', log: createLog('silent') });
  const { orm, schema } = desk.find(database)!;
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const rows = (await orm.execute(
    sql`select account_id, request_id, estimated, classes from ${table('usage')}`,
  )) as unknown as {
    account_id: string;
    request_id: string;
    estimated: boolean;
    classes: Record<string, number>;
  }[];
  const [unknown] = (await orm.execute(
    sql`select count(*)::int as count from ${table('attempts')} where result = 'unknown'`,
  )) as unknown as { count: number }[];
  const [open] =
    (await orm.execute(sql`select count(*)::int as count from ${table('ledger')} as hold where kind = 'HOLD' and not exists
    (select from ${table('ledger')} as ended where ended.request_id = hold.request_id and ended.kind in ('SETTLE', 'VOID', 'EXPIRE'))`)) as unknown as {
      count: number;
    }[];
  const audit = desk.commands.find((command) => command.name === 'audit')!;
  const report = (await audit.run({})).json as { violations: unknown[] };
  await desk.stop(0);
  return {
    charges: rows.map((row) => ({
      accountId: row.account_id,
      requestId: row.request_id,
      estimated: row.estimated,
      classes: row.classes,
    })),
    unknown: unknown!.count,
    auditViolations: report.violations,
    openHolds: open!.count,
  };
}

export interface Evidence {
  readonly acknowledged: readonly Acknowledged[];
  readonly bill: { requests: number; totals: Record<string, Record<string, number>> };
  readonly charges: Charges;
  /** Requests that can have been in flight at all kills together. */
  readonly mostInFlight: number;
  /** What is charged to these accounts was asked for under so many Idempotency-Keys. */
  readonly keyed: { readonly accountIds: ReadonlySet<string>; readonly sent: number; readonly lost: number };
}

export function compare({ acknowledged, bill, charges, mostInFlight, keyed }: Evidence): {
  account: string[];
  violations: string[];
} {
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
    else if (charge.estimated) settledByEstimate++;
    else if (input(charge) !== answer.promptTokens || output(charge) !== answer.completionTokens) {
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
  if (settledByEstimate > mostInFlight)
    violations.push(`${settledByEstimate} whole answers were charged by estimate, more than were in flight`);
  if (exact.length > bill.requests)
    violations.push(`${exact.length} exact charges for ${bill.requests} requests that the vendor ran`);
  if (bill.requests > exact.length + estimated + charges.unknown) {
    violations.push(
      `the vendor ran ${bill.requests} requests, the books know ${exact.length + estimated + charges.unknown}`,
    );
  }
  if (charged > billed) violations.push(`${charged} tokens were charged exactly, the vendor billed ${billed}`);
  const keyedCharges = charges.charges.filter(({ accountId }) => keyed.accountIds.has(accountId)).length;
  if (keyedCharges > keyed.sent)
    violations.push(`${keyedCharges} charges for ${keyed.sent} Idempotency-Keys: some were charged more than once`);
  if (charges.openHolds > 0) violations.push(`${charges.openHolds} holds were never ended`);
  for (const violation of charges.auditViolations) violations.push(`audit: ${JSON.stringify(violation)}`);
  const account = [
    `clients hold ${acknowledged.length} whole answers; each was charged once${settledByEstimate > 0 ? `, ${settledByEstimate} of them by estimate` : ''}`,
    `${keyed.sent} Idempotency-Keys were charged ${keyedCharges} times; the answers of ${keyed.lost} went with a crash`,
    `the vendor billed ${bill.requests} requests and ${billed} tokens`,
    `the ledger charged ${exact.length} requests exactly (${charged} tokens) and ${estimated} that were cut by estimate; ${charges.unknown} attempts ended unknown`,
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
