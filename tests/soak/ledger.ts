/** Holds the ledger of a gateway that has stopped against the vendor's bill and the answers that clients got. */
import { sql } from 'drizzle-orm';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { database } from '../../plugins/common/domain/database.ts';
import type { BillReport } from '../../plugins/sandbox/bill.ts';
import { readCharges } from '../kill/compare.ts';

type Classes = Readonly<Record<string, number>>;

interface ModelRow {
  readonly model: string;
  readonly charges: number;
  readonly estimated: number;
  readonly class: string | null;
  readonly count: string | null;
}

export interface Findings {
  readonly account: readonly string[];
  readonly violations: readonly string[];
}

/** `answered`: ids of whole answers that clients hold. `isExact`: models whose charges must agree with the bill to the token. */
export async function compareLedger(
  file: string,
  bill: BillReport,
  answered: ReadonlySet<string>,
  isExact: (model: string) => boolean,
): Promise<Findings> {
  const violations: string[] = [];
  const { charges, auditViolations, left } = await readCharges(file);
  for (const violation of auditViolations) violations.push(`audit: ${JSON.stringify(violation)}`);
  if (left > 0) violations.push(`${left} authorizations or leases are left`);
  const charged = new Set<string>();
  for (const { requestId } of charges) {
    if (charged.has(requestId)) violations.push(`${requestId} was charged twice`);
    charged.add(requestId);
  }
  const free = [...answered].filter((id) => !charged.has(id));
  if (free.length > 0) violations.push(`${free.length} whole answers were never charged, the first is ${free[0]}`);
  const totals = await totalsByModel(file);
  for (const [model, billed] of Object.entries(bill.totals)) {
    const own = totals.get(model);
    if (isExact(model)) violations.push(...differences(model, billed as Classes, own?.classes ?? {}));
    if (isExact(model) && (own?.estimated ?? 0) > 0)
      violations.push(`${own!.estimated} calls of ${model} were estimated`);
  }
  for (const model of totals.keys())
    if (bill.totals[model as keyof typeof bill.totals] === undefined)
      violations.push(`${model} was charged, never billed`);
  const exact = Object.keys(bill.totals).filter(isExact).length;
  const account = [
    `the vendor billed ${bill.requests} requests (${bill.cut} cut), ${bill.open} are open; the ledger has ${charges.length} charges`,
    `${answered.size} whole answers were charged once each; ${exact} models agree with the bill in every class of usage`,
  ];
  return { account: violations.length === 0 ? account : account.slice(0, 1), violations };
}

function differences(model: string, billed: Classes, charged: Classes): string[] {
  const names = new Set([...Object.keys(billed), ...Object.keys(charged)]);
  return [...names]
    .filter((name) => (billed[name] ?? 0) !== (charged[name] ?? 0))
    .map(
      (name) => `${model}: the vendor billed ${billed[name] ?? 0} of ${name}, the ledger charged ${charged[name] ?? 0}`,
    );
}

async function totalsByModel(file: string): Promise<Map<string, { classes: Classes; estimated: number }>> {
  const admin = await boot(file, { mode: 'command', log: createLog('silent') });
  try {
    const { orm, schema } = admin.find(database)!;
    const calls = sql`${sql.identifier(schema)}.calls`;
    const rows = (await orm.execute(sql`
      select model, count(*)::int as charges, sum(estimated::int)::int as estimated, c.key as class, sum(c.value::bigint)::text as count
      from ${calls} left join lateral jsonb_each_text(classes) as c on true where settled group by model, c.key`)) as unknown as ModelRow[];
    const totals = new Map<string, { classes: Record<string, number>; estimated: number }>();
    for (const row of rows) {
      const total = totals.get(row.model) ?? { classes: {}, estimated: 0 };
      totals.set(row.model, total);
      if (row.class !== null) total.classes[row.class] = Number(row.count);
      total.estimated = Math.max(total.estimated, row.estimated);
    }
    return totals;
  } finally {
    await admin.stop(0);
  }
}
