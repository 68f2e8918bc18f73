/** A demo gateway with its sandbox vendor, the main or the second one as they are shipped, and the customers that call it. */
import { setTimeout as pause } from 'node:timers/promises';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { catalog } from '../../plugins/common/domain/models.ts';
import { cost, type Money, one, parseRatio, parseUsd } from '../../plugins/common/domain/money.ts';
import { memberAdmin } from '../../plugins/common/domain/organizations/members.ts';
import { priceFor } from '../../plugins/common/domain/prices.ts';
import { localUpstreams } from '../../plugins/common/domain/upstreams.ts';
import type { Usage } from '../../plugins/common/domain/usage.ts';
import type { BillEntry, BillReport } from '../../plugins/sandbox/bill.ts';
import { startGateway } from '../helpers/gateway.ts';
import { type Ground, startFleet } from './fleet.ts';

/** One request a minute: the second call is refused. */
const tightPlan = 'tight';

/** The same suite is run before each: the files of the second gateway and of the fleet set this and import the first one's. */
const isSecond = process.env['SDK_GATEWAY'] === 'demo-alt';
const isFleet = process.env['SDK_GATEWAY'] === 'fleet';
/** Errors come as {code, message} whatever the protocol; by their status the clients tell them apart all the same. */
export const shaped = isSecond;
/** Each process of the fleet has a vendor of its own, which alone knows what it has answered. */
export const hasOneVendor = !isFleet;
const ratio = isSecond ? parseRatio('2') : one;
const plan = isSecond ? 'payg' : 'free';

const offers = { [tightPlan]: { price: 0, limits: { rpm: 1 } } };
const yaml = `
include: config/${isSecond ? 'demo-alt' : 'demo'}.yaml
plans: { offers: ${JSON.stringify(offers)} }
`;

interface Keys {
  /** Has money and no limit that a test would meet. */
  readonly good: string;
  /** Has no money. */
  readonly broke: string;
  /** May call another model than the tests do. */
  readonly narrow: string;
  /** May call once a minute. */
  readonly tight: string;
  /** Administers the account of `good`. */
  readonly admin: string;
}

/** What a call has cost. */
interface Settlement {
  /** Classes without a count are left out. */
  readonly usage: Usage;
  readonly estimated: boolean;
  /** By how much the balance fell, and what the usage costs by the catalogue and the gateway's ratio. */
  readonly paid: bigint;
  readonly due: Money;
  /** What the vendor has billed for it. */
  readonly entry: BillEntry;
}

export interface Demo {
  readonly origin: string;
  readonly keys: Keys;
  /** Makes one call with `keys.good` and waits until it is settled. `media`: words of size and quality that its price goes by. */
  settled(call: () => Promise<unknown>, media?: readonly string[]): Promise<Settlement>;
  /** Requests that the vendor has billed so far. */
  billed(): Promise<number>;
  /** Whether all invariants of the ledger hold. */
  audit(): Promise<{ readonly violations: readonly unknown[] }>;
  stop(): Promise<void>;
}

export const model = 'gpt-5.4-mini';

/** Each failing vendor gets a model of its own: what one failure does to a key must not be seen by the next. */
export const failing = [
  { status: 500, model: 'gpt-5.3-codex' },
  { status: 503, model: 'gpt-5.4' },
  { status: 529, model: 'gpt-5.5' },
] as const;
export const limited = { status: 429, model: 'gpt-5.2' } as const;

/** Long enough to be left in its middle. */
export const slowPrompt = 'Take your time. [[sandbox: chunk_delay=20ms tokens=2000]]';

/** Long enough to be cached. */
export const longPrompt = 'Every word of this instruction is here to make it long. '.repeat(100);

export async function startDemo(): Promise<Demo> {
  const running = isFleet ? await startFleet(offers) : await startOne();
  const keys = await openAccounts(running);
  const command = async (name: string, values: Record<string, string>) =>
    (await running.gateway.commands.find((one) => one.name === name)!.run(values)).json;
  return {
    origin: running.origin,
    keys,
    settled: (call, media) => settled(running, command, call, media),
    billed: async () => (await running.bill()).requests,
    audit: async () => (await command('audit', {})) as Awaited<ReturnType<Demo['audit']>>,
    stop: () => running.stop(),
  };
}

async function startOne(): Promise<Ground> {
  const running = await startGateway(yaml);
  const vendor = running.gateway.find(localUpstreams)!.origin('sandbox')!;
  return { ...running, bill: async () => (await (await fetch(`${vendor}/bill`)).json()) as BillReport };
}

async function openAccounts({ gateway }: Ground): Promise<Keys> {
  const open = async (
    name: keyof Keys,
    plan: string,
    usd: string,
    models?: readonly string[],
    tags?: readonly string[],
  ) => {
    const account = await gateway.find(accounts)!.create(name, plan);
    if (usd !== '0') {
      const grant = { kind: 'manual', reason: 'test', reference: `test:${name}` };
      await gateway.find(ledger)!.credit(account.id, parseUsd(usd), grant);
    }
    const terms = { name, models, tags, project: tags && 'search' };
    return (await gateway.find(accountAdmin)!.createKey(account.id, terms, tags && 'ann')).key;
  };
  return {
    good: await open('good', plan, '100', undefined, ['team=search', 'env']),
    broke: await open('broke', plan, '0'),
    narrow: await open('narrow', plan, '100', ['claude-opus-5']),
    tight: await open('tight', tightPlan, '100'),
    admin: await administrator(gateway),
  };
}

async function administrator({ find }: Ground['gateway']): Promise<string> {
  const account = await find(accounts)!.find('good');
  const { invitations } = find(memberAdmin)!;
  const [email, hash] = ['member@example.test', 'of-a-test'];
  await invitations.create(account!.id, { email, role: 'developer', hash }, { role: 'admin' });
  await invitations.accept(hash, { person: 'a-member', email });
  return (await find(accountAdmin)!.createKey(account!.id, { name: 'admin', access: 'organization' })).key;
}

interface Statement {
  readonly held: string;
  readonly rows: readonly {
    readonly kind: string;
    readonly detail: { readonly usage?: Usage; readonly estimated?: boolean };
  }[];
}

const quietLooks = isFleet ? 5 : 1;

async function settled(
  { gateway, bill }: Ground,
  command: (name: string, values: Record<string, string>) => Promise<unknown>,
  call: () => Promise<unknown>,
  media: readonly string[] = [],
): Promise<Settlement> {
  const { id } = (await gateway.find(accounts)!.find('good'))!;
  const statement = async () => (await command('ledger', { account: id, limit: '1000' })) as Statement;
  const settlements = async () => (await statement()).rows.filter((row) => row.kind === 'CHARGE');
  // Calls of before are settled first, so that their rows are not taken for this one's: rows reach the database within a few
  // hundredths of a second, those of several processes within some batches.
  let known = -1;
  for (let quiet = 0; quiet < quietLooks; ) {
    await pause(120);
    const { held, rows } = await statement();
    quiet = held === '0.00' && (known === rows.length || quietLooks === 1) ? quiet + 1 : 0;
    known = rows.length;
  }
  const balance = () => gateway.find(ledger)!.balance(id);
  const [earlier, before, billedBefore] = [(await settlements()).length, await balance(), (await bill()).requests];
  await call();
  const deadline = Date.now() + 60_000;
  for (;;) {
    const rows = await settlements();
    const report = await bill();
    if (rows.length > earlier && report.requests > billedBefore) {
      const { usage: stated = {}, estimated = false } = rows[0]!.detail;
      const usage = Object.fromEntries(Object.entries(stated).filter(([, count]) => count > 0)) as Usage;
      const entry = report.recent.at(-1)!;
      // A vendor's bill has its own name of the model.
      const { find, list } = gateway.find(catalog)!;
      const named = () => list().find(({ targets }) => targets.some(({ model }) => model === entry.model));
      const { prices } = (find(entry.model) ?? named())!;
      const due = cost(usage, priceFor(prices!, Date.now(), usage, { media })!.price, ratio);
      return { usage, estimated, due, paid: before - (await balance()), entry };
    }
    if (Date.now() > deadline) throw new Error('the call was not settled within a minute');
    await pause(10);
  }
}
