/**
 * The table of keyed calls in memory means what the real one does: the same random histories of claims, ends and takeovers, on
 * it and on the embedded database (or PostgreSQL, with TEST_DATABASE_URL), give the same answers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyedCall } from '../../plugins/idempotency/key.ts';
import { CallRows, type KeyedRows, type KnownCall } from '../../plugins/idempotency/rows.ts';
import { openDatabase } from '../helpers/database.ts';
import { Chance } from './chance.ts';
import { KeyTable, MemoryKeys } from './memory-keys.ts';

const hourMs = 3_600_000;
/** What is written by a process of the first kind lasts; by the others it is over as soon as it is written. */
const lifetimes = [
  { leaseMs: hourMs, keepMs: hourMs },
  { leaseMs: -1_000, keepMs: hourMs },
  { leaseMs: -1_000, keepMs: -1_000 },
  { leaseMs: hourMs, keepMs: -1_000 },
] as const;
const owners = ['one', 'two'] as const;

/** A process's way to the table, by its number. */
type Step = (rows: readonly KeyedRows[]) => Promise<unknown>;

/** Ages differ by how fast each side is. */
const ageless = (known: KnownCall | undefined) =>
  known && {
    ...known,
    ageMs: 0,
    reported: known.answer && { ...known.answer, error: undefined, body: Buffer.from(known.answer.body).toString() },
  };

function script(chance: Chance, length: number): Step[] {
  const steps: Step[] = [];
  let count = 0;
  const calls: KeyedCall[] = [];
  const newCall = (): KeyedCall => {
    count += 1;
    const requestId = `01a3185c-0000-7000-8000-${String(count).padStart(12, '0')}`;
    const call = {
      accountId: 'alice',
      keyHash: `key-${chance.below(4)}`,
      fingerprint: `body-${chance.below(2)}`,
      requestId,
    };
    calls.push(call);
    return call;
  };
  for (let step = 0; step < length; step += 1) {
    const by = chance.below(lifetimes.length * owners.length);
    const call = calls.length === 0 || chance.oneIn(3) ? newCall() : chance.pick(calls.slice(-8));
    const [other, reported] = [newCall(), { status: 200, headers: { a: 'b' }, body: Buffer.from(`answer ${count}`) }];
    const isKept = chance.oneIn(2);
    const deeds: readonly Step[] = [
      (rows) => rows[by]!.claim(call),
      (rows) => rows[by]!.claim(call),
      async (rows) => {
        const known = await rows[by]!.find(call);
        const taken = known !== undefined && (await rows[by]!.takeOver({ ...other, keyHash: call.keyHash }, known));
        return [ageless(known), taken];
      },
      (rows) => rows[by]!.finish({ call, answer: isKept ? reported : undefined }),
      (rows) => rows[by]!.free(call),
      (rows) => rows[by]!.renew(calls.slice(-3)),
      async (rows) => {
        const left = [...(await rows[by]!.findRunning())].sort();
        await rows[by]!.abandon(isKept ? left : calls.slice(-6).map(({ requestId }) => requestId));
        return left;
      },
      (rows) => rows[by]!.deleteExpired(),
    ];
    const deed = step % 12 === 11 ? deeds[chance.between(6, 7)]! : deeds[chance.below(6)]!;
    steps.push(async (rows) => [await deed(rows), ageless(await rows[0]!.find(call))]);
  }
  return steps;
}

test('keyed calls in memory give the answers of real ones', async () => {
  const histories = Number(process.env['CONFORMANCE_HISTORIES'] ?? 4);
  for (let seed = 1; seed <= histories; seed += 1) {
    const database = await openDatabase({ plugins: ['idempotency'] });
    const table = new KeyTable(() => 0);
    const link = { send: <T>(_name: string, run: () => Promise<T>) => run() };
    const sides = owners.flatMap((owner) => lifetimes.map((each) => ({ owner, each })));
    const memory = sides.map(({ owner, each }) => new MemoryKeys(table, link, owner, each));
    const real = sides.map(({ owner, each }) => new CallRows(database, owner, each));
    for (const [index, step] of script(new Chance(seed), 120).entries())
      assert.deepEqual(await step(memory), await step(real), `history ${seed}, step ${index}`);
    await database.close();
  }
});
