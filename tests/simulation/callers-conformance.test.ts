/**
 * The tables of API keys in memory mean what the real ones do: the same random histories of keys that are made, changed and
 * revoked, on them and on the embedded database (or PostgreSQL, with TEST_DATABASE_URL), give the same answers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openAccountAdminStore } from '../../plugins/auth/account-queries.ts';
import type { Stores } from '../../plugins/auth/index.ts';
import { openStore } from '../../plugins/auth/store.ts';
import { openDatabase, type TestDatabase } from '../helpers/database.ts';
import { Chance } from './chance.ts';
import { CallerTable, memoryStores } from './memory-callers.ts';

const names = ['acme', 'other'] as const;

/** One of the two, with its own ids by the names that the history has for them. */
interface Side {
  readonly stores: Stores;
  readonly accounts: ReadonlyMap<string, string>;
  readonly keys: Map<string, string>;
  /** Hashes of keys whose change was announced. */
  readonly heard: string[];
}
type Step = (side: Side) => Promise<unknown>;

function memorySide(): Side {
  const table = new CallerTable();
  for (const name of names) {
    const terms = { plan: 'free', planEndsAt: null, disabled: false, multiplier: null, retention: null };
    table.accounts.set(`id-${name}`, { id: `id-${name}`, name, ...terms, createdAt: new Date(0) });
  }
  const stores = memoryStores(table, { send: <T>(_name: string, run: () => Promise<T>) => run() });
  const heard: string[] = [];
  table.onAnnounce = (hash) => void heard.push(hash);
  return { stores, accounts: new Map(names.map((name) => [name, `id-${name}`])), keys: new Map(), heard };
}

async function realSide(database: TestDatabase): Promise<Side> {
  const store = openStore(database);
  const accounts = new Map<string, string>();
  for (const name of names)
    accounts.set(name, (await store.insertAccount({ name, plan: 'free', createdAt: new Date(0) }))!.id);
  const heard: string[] = [];
  database.onChange('key', (hash) => void heard.push(hash));
  return { stores: { store, admin: openAccountAdminStore(database) }, accounts, keys: new Map(), heard };
}

/** With the history's names in the place of ids. */
function comparable(answer: unknown, { accounts, keys }: Side): string {
  // Projects have ids in the database alone.
  const shown = (name: string, value: unknown) => (name === 'projectId' ? undefined : value);
  let text =
    JSON.stringify(answer, (name, value) => (typeof value === 'bigint' ? `${value}n` : shown(name, value))) ??
    'nothing';
  for (const [name, id] of [...accounts, ...keys]) text = text.replaceAll(`"${id}"`, `"id of ${name}"`);
  return JSON.stringify(sorted(text === 'nothing' ? null : JSON.parse(text)));
}

/** Members in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  );
}

function script(chance: Chance, length: number): Step[] {
  const drawTerms = () => ({
    name: `name ${chance.below(9)}`,
    project: chance.oneIn(3) ? 'web' : null,
    models: chance.oneIn(3) ? ['small'] : null,
    expiresAt: chance.oneIn(2) ? new Date(1_800_000_000_000 + chance.below(9_000)) : null,
    addresses: chance.oneIn(4) ? ['192.0.2.1'] : null,
    limits: chance.oneIn(4) ? { rpm: chance.between(1, 9) } : null,
    ...(chance.oneIn(2)
      ? { capAmount: BigInt(chance.below(900)), capEvery: 'ever' }
      : { capAmount: null, capEvery: null }),
    images: chance.oneIn(3) ? 'wait' : null,
    tags: chance.oneIn(3) ? ['team=search', 'env'] : null,
    regions: chance.oneIn(3) ? ['eu'] : null,
  });
  const made: string[] = [];
  const steps: Step[] = [];
  for (let step = 0; step < length; step += 1) {
    const account = chance.pick(names);
    const label =
      made.length === 0 || chance.oneIn(4) ? `key-${made.push(`key-${made.length}`) - 1}` : chance.pick(made);
    const [terms, at, isNew] = [drawTerms(), new Date(1_800_000_000_000 + step), step];
    const stranger = '00000000-0000-4000-b000-ffffffffffff';
    const deeds: readonly Step[] = [
      ({ stores, keys }) => stores.store.revokeKey(keys.get(label)!, `hash of ${label}`, at),
      ({ stores, keys }) => stores.admin.changeKey(keys.get(label)!, `hash of ${label}`, terms),
      ({ stores, keys }) => stores.store.touchKeys([[keys.get(label)!, at.getTime() - chanceMs]]),
      ({ stores, accounts, keys }) => stores.admin.key(accounts.get(account)!, keys.get(label)!),
      ({ stores, accounts }) => stores.admin.key(accounts.get(account)!, stranger),
      ({ stores }) =>
        stores.store.findKeys(`prefix of ${label}`).then((found) => found.map(({ id, hash }) => [id, hash])),
      ({ stores }) => stores.store.findValidKey('hash of no key'),
      ({ stores }) => stores.store.getOrSetSetting(`setting ${isNew % 3}`, `value ${isNew}`),
      ({ stores, accounts }) => stores.admin.account(accounts.get(account)!),
    ];
    const chanceMs = chance.below(40);
    const deed = chance.pick(deeds);
    steps.push(async (side) => {
      const { stores, accounts, keys } = side;
      if (!keys.has(label)) {
        const owner = accounts.get(account)!;
        const row = {
          ...terms,
          accountId: owner,
          prefix: `prefix of ${label}`,
          hash: `hash of ${label}`,
          createdAt: at,
          person: null,
          access: null,
        };
        keys.set(label, await stores.store.insertKey(row, []));
      }
      const answer = await deed(side);
      const valid = await stores.store.findValidKey(`hash of ${label}`);
      const live = await stores.admin.countActiveKeys(accounts.get(account)!);
      return comparable([answer, valid, live, side.heard], side);
    });
  }
  return steps;
}

test('API keys in memory give the answers of real ones', async () => {
  const histories = Number(process.env['CONFORMANCE_HISTORIES'] ?? 4);
  for (let seed = 1; seed <= histories; seed += 1) {
    const database = await openDatabase({ plugins: ['auth'] });
    const [memory, real] = [memorySide(), await realSide(database)];
    for (const [index, step] of script(new Chance(seed), 80).entries())
      assert.equal(await step(memory), await step(real), `history ${seed}, step ${index}`);
    await database.close();
  }
});
