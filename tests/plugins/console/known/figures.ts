/** What the known set comes to: its calls as the price list has them, refunds and flows of money, added up by nothing of the product. */
import assert from 'node:assert/strict';
import { type SQL, sql } from 'drizzle-orm';
import { database } from '../../../../plugins/common/domain/database.ts';
import { until } from '../../../helpers/until.ts';
import { type Flow, flowsByRows, sumWithin } from '../../billing/flows-oracle.ts';
import { KnownSet, type Made, minute, type Result, start, type Zone, zones } from './play.ts';
import { chargeOf, ownCostOf, sum, type Units, usd } from './prices.ts';

/** A call with an account. What its client's answer says is priced here; of the others the row's own usage is. */
export interface Call extends Made {
  readonly provider: string;
  readonly keyId: string;
  readonly settled: boolean;
  readonly cost: bigint;
  readonly own: bigint | undefined;
  /** The gateway's estimate for attempts that no client pays. */
  readonly absorbed: bigint;
  readonly used: Units;
}

export interface Refund {
  readonly at: number;
  readonly amount: bigint;
  readonly call: Call;
}

interface Row {
  readonly id: string;
  readonly key: string;
  readonly provider: string;
  readonly settled: boolean;
  readonly cost: string;
  readonly own: string | null;
  readonly absorbed: string;
}

export class Figures {
  readonly known: KnownSet;
  readonly calls: Call[] = [];
  readonly refunds: Refund[] = [];
  flows: Flow[] = [];

  private constructor(known: KnownSet) {
    this.known = known;
  }

  static async play(): Promise<Figures> {
    const figures = new Figures(await KnownSet.play());
    await figures.#read();
    return figures;
  }

  /** The whole time of the set, as a query. */
  get span(): string {
    return `from=${new Date(start).toISOString()}&until=${new Date(this.known.now + minute).toISOString()}`;
  }

  flow(what: Flow['what']): string {
    return usd(sumWithin(this.flows, what, start, this.known.now + minute));
  }

  count(result: Result, isWanted: (made: Made) => boolean = () => true): number {
    return this.known.made.filter((one) => !one.isNoise && one.result === result && isWanted(one)).length;
  }

  /** What these calls and refunds come to. */
  moneyOf(isWanted: (call: Call) => boolean = () => true, isTime: (at: number) => boolean = () => true) {
    const calls = this.calls.filter((call) => isWanted(call) && isTime(call.at));
    const back = this.refunds.filter(({ at, call }) => isWanted(call) && isTime(at));
    const settled = calls.filter((call) => call.settled);
    const costed = settled.filter(({ own }) => own !== undefined);
    const without = settled.filter(({ own }) => own === undefined);
    const amounts = (some: readonly Refund[]) => sum(some.map(({ amount }) => amount));
    const cost = sum(settled.map((call) => call.cost));
    const refunded = amounts(back);
    const uncosted = sum(without.map((call) => call.cost)) - amounts(back.filter(({ call }) => call.own === undefined));
    const ownCost = sum(costed.map(({ own }) => own!));
    const writtenOff = sum(calls.map(({ absorbed }) => absorbed));
    const isKnown = without.length === 0 || costed.length > 0;
    return {
      cost: usd(cost),
      refunded: usd(refunded),
      ownCost: isKnown ? usd(ownCost) : null,
      ownCostUnknown: without.length,
      uncosted: usd(uncosted),
      writtenOff: usd(writtenOff),
      margin: isKnown ? usd(cost - refunded - uncosted - ownCost - writtenOff) : null,
    };
  }

  async #read(): Promise<void> {
    const { known } = this;
    const { orm, schema } = known.testbed.gateway.find(database)!;
    const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
    const rows = async <Found>(statement: SQL) => {
      const found = (await orm.execute(statement)) as unknown as { rows?: Found[] };
      return (found.rows ?? found) as unknown as Found[];
    };
    // Rows are written behind the requests' backs; those that never had an account have none here.
    const expected = known.made.filter(({ isNoise }) => !isNoise);
    const found = await until('every call has its row', async () => {
      const some =
        await rows<Row>(sql`select id::text as id, key_id as key, coalesce(provider, '') as provider, settled, cost::text as cost,
        own_cost::text as own, coalesce(absorbed, 0)::text as absorbed from ${table('calls')}`);
      const byId = new Map(some.map((row) => [row.id, row]));
      return expected.every(({ id, units }) => units === null || byId.get(id)?.settled === true) && byId;
    });
    for (const made of expected) {
      const row = found.get(made.id);
      if (row !== undefined) this.calls.push(callOf(made, row, made.units ?? (await this.#usedBy(row))));
    }
    await this.#refund();
    // What has expired is booked when it is looked at, and dated at its end.
    await known.ada.browser.send('/wallet');
    // The grant of an account's plan is made when it is looked at.
    await known.boss.send('/wallet');
    known.tick();
    this.flows = await flowsByRows(rows, table);
  }

  /** What a call used that its client did not hear of. */
  async #usedBy({ id }: Row): Promise<Units> {
    return (await this.known.boss.send(`/admin/requests/${id}`)).json.charge?.usage ?? {};
  }

  async #refund(): Promise<void> {
    const { known, calls } = this;
    const of = ({ accountId }: { accountId: string }) =>
      calls.filter(({ account, cost, isNoise }) => account === accountId && cost > 0n && !isNoise);
    for (const call of [of(known.ada)[0]!, of(known.ada).at(-1)!, of(known.bob)[0]!]) {
      known.tick();
      await known.change(`/admin/requests/${call.id}/refund`, { amount: usd(call.cost) });
      this.refunds.push({ at: known.now, amount: call.cost, call });
      known.move(call.account === known.ada.accountId ? known.ada : known.bob, 'test', call.cost);
    }
  }
}

/** The call as it must be, whatever its row says. */
function callOf(made: Made, row: Row, used: Units): Call {
  const isCharged = made.units !== null;
  const cost = isCharged ? chargeOf(made.model, used, made.ratio) : 0n;
  const own = isCharged ? ownCostOf(made.model, used) : undefined;
  assert.deepEqual(
    [made.model, made.path, row.settled, row.cost, row.own],
    [made.model, made.path, isCharged, String(cost), own === undefined ? null : String(own)],
  );
  const { provider, key: keyId } = row;
  return { ...made, used, provider, keyId, settled: isCharged, cost, own, absorbed: BigInt(row.absorbed) };
}

const calendars = new Map(zones.map((zone) => [zone, new Intl.DateTimeFormat('en-CA', { timeZone: zone })]));

export const dayIn = (zone: Zone, at: number) => calendars.get(zone)!.format(at);
