/** Worlds with old calls, a store of files in memory, and all that anybody can read of an account's calls. */
import { sql } from 'drizzle-orm';
import { callSums } from '../../../plugins/billing/ledger/call-sums.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { type SealedFiles, sealedFiles } from '../../../plugins/common/domain/stored-files.ts';
import { foldSums } from '../../../plugins/common/rollups/fold.ts';
import { requestIdAt } from '../../helpers/fakes.ts';
import { answer, enter, newCall, newWorld, type World } from './world.ts';

export const dayMs = 86_400_000;

/** A bucket in memory, which may refuse, and which somebody may change. */
export class MemoryFiles implements SealedFiles {
  readonly objects = new Map<string, Uint8Array>();
  failure: Error | undefined;

  unfit(): string | undefined {
    return undefined;
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    this.objects.set(name, Buffer.from(bytes));
  }

  async read(name: string, mostBytes: number): Promise<Uint8Array | undefined> {
    if (this.failure !== undefined) throw this.failure;
    return this.objects.get(name)?.subarray(0, mostBytes);
  }
}

export interface ArchiveWorld {
  readonly world: World;
  readonly files: MemoryFiles;
}

export async function newArchiveWorld(section: object = { archive: { after: '31d' } }): Promise<ArchiveWorld> {
  const files = new MemoryFiles();
  const world = await newWorld({ section, beside: async (host) => host.provide(sealedFiles, files) });
  return { world, files };
}

/** Another process on its tables, with the same store of files; not started. */
export async function newArchiveWorldOn(world: World, files: MemoryFiles): Promise<ArchiveWorld> {
  const other = await newWorld({
    section: { archive: { after: '31d' } },
    schema: world.host.schema,
    jumpedMs: world.host.clock.now() - 1_800_000_000_000,
    beside: async (host) => host.provide(sealedFiles, files),
  });
  return { world: other, files };
}

export const commandOf = (world: World, name: string, values: Record<string, string | boolean> = {}) =>
  world.part.commandLine!.commands!.find((each) => each.name === name)!.run(values);

/** A charged call that arrives now; resolves with its id. */
export async function charge(world: World, accountId: string, output: number, key = 'key-1'): Promise<string> {
  const id = requestIdAt(world.host.clock.now());
  const exchange = newCall({ id, accountId, call: { inputTokens: 1_000, maxOutputTokens: 1_000 } });
  exchange.set(caller, {
    accountId,
    keyId: key,
    plan: 'free',
    models: undefined,
  });
  await enter(world, exchange);
  await answer(exchange, { input: 1_000, output });
  return id;
}

export const written = (world: World) => world.tick('write the ledger');

/** Rounds until there is nothing to do. */
export async function archiveAll({ world }: ArchiveWorld): Promise<void> {
  const { work } = world.host.intervals.find(({ name }) => name === 'archive old calls')!;
  while ((await work()) !== 'idle');
}

export const archiveRoundOf = ({ world }: ArchiveWorld) =>
  world.host.intervals.find(({ name }) => name === 'archive old calls')!.work();

export const fold = ({ database: { orm, schema }, host }: World) => foldSums(orm, schema, callSums, host.clock.now());

export async function countIn(world: World, table: string): Promise<number> {
  const [row] = await world.rows<{ count: number }>(sql`select count(*)::int as count from ${world.table(table)}`);
  return row!.count;
}

/** Statements, charges, sums of odd minutes and balances, as one text. */
export async function shownOf(world: World, accounts: readonly string[], ids: readonly string[], from: number) {
  const queries = world.host.get(ledgerQueries);
  // At the beginning too there is a span to ask for.
  const until = Math.max(world.host.clock.now(), from + 600_000);
  const [odd, middle] = [from + 61_007, Math.floor((from + until) / 2) + 13];
  const shown: unknown[] = [await queries.balances(accounts).then((balances) => [...balances])];
  for (const accountId of [...accounts, undefined]) {
    for (let after: string | undefined; ; ) {
      const page = await queries.ledger(accountId, {}, { limit: 7, after });
      shown.push(page);
      if (page.next === undefined) break;
      after = page.next;
    }
    const filter = accountId === undefined ? {} : { accountId };
    shown.push(await queries.spendBetween(filter, [odd, middle]));
    shown.push(await queries.spendBetween(filter, [middle, until]));
    for (const by of ['day', 'model', 'key', 'account', 'provider'] as const)
      shown.push(await queries.spend({ ...filter, from: odd, until: middle }, by, 100));
    shown.push(await queries.chargesOf(ids, accountId));
    for (const id of ids.slice(0, 5)) shown.push(await queries.charge(id, accountId));
  }
  shown.push(await queries.totals({ from: odd, until: middle }));
  for (const id of ids.slice(0, 5)) shown.push(await world.host.get(ledger).endOf(id));
  return JSON.stringify(shown, (_, value: unknown) => (typeof value === 'bigint' ? `${value} nano` : value), 1);
}
