/** A key that gets another secret: the one before works until its end, on every process, and not a moment longer. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { closeEmbedded, type EmbeddedDatabase, openEmbedded } from './embedded.ts';
import { type Gate, openGate } from './setup.ts';

after(closeEmbedded);

const hourMs = 3_600_000;
const isRefused = async (gate: Gate, secret: string) => {
  const { kind, code } = await gate.refusal(secret);
  assert.deepEqual({ kind, code }, { kind: 'unauthenticated', code: 'invalid_api_key' });
};

const rotate = async (gate: Gate, key: string, overlap?: string) => {
  const values = { key, ...(overlap === undefined ? {} : { overlap }) };
  const { json, text } = await gate.command('keys rotate', values);
  return { ...(json as { id: string; key: string; prefix: string; overlapEndsAt: Date | null }), text };
};
let processes = 0;
/** One process with a clock of its own, and chance that no other one has. */
async function openProcess(db: EmbeddedDatabase, section: unknown = {}): Promise<Gate> {
  const gate = await openGate(section, db);
  processes += 1;
  for (let drawn = 0; drawn < processes; drawn++) gate.host.random.bytes(31);
  return gate;
}
async function openFleet(): Promise<[Gate, Gate]> {
  const db = await openEmbedded();
  return [await openProcess(db), await openProcess(db)];
}

test('both secrets are the same key until the overlap ends, on both processes, known or not', async () => {
  const fleet = await openFleet();
  const [here, there] = fleet;
  const old = await here.newKey({ models: ['one'] });
  const before = await there.send(old);
  const made = await rotate(here, 'test', '24h');
  assert.match(made.text, new RegExp(`^${made.key}\n\n.* The one before works until `));
  for (const gate of fleet)
    for (const secret of [old, made.key, old]) assert.deepEqual(await gate.send(secret), before);
  for (const gate of fleet) gate.host.advance(24 * hourMs - 1);
  for (const gate of fleet) assert.deepEqual(await gate.send(old), before);
  for (const gate of fleet) gate.host.advance(1);
  for (const gate of fleet) {
    await isRefused(gate, old);
    assert.deepEqual(await gate.send(made.key), before);
  }
  // A process that starts then has never seen it.
  const later = await openProcess(here.db);
  later.host.advance(24 * hourMs);
  await isRefused(later, old);
});

test('an earlier secret that is read again each minute keeps its end', async () => {
  const [gate] = await openFleet();
  const old = await gate.newKey();
  await rotate(gate, 'test', '1h');
  for (let minute = 0; minute < 60; minute++) {
    await gate.send(old);
    await new Promise(setImmediate);
    gate.host.advance(60_000);
  }
  await isRefused(gate, old);
});

test('without an overlap the secret before, and those before that still worked, end at once on both processes', async () => {
  const fleet = await openFleet();
  const first = await fleet[0].newKey();
  const second = await rotate(fleet[0], 'test');
  for (const gate of fleet) for (const secret of [first, second.key]) await gate.send(secret);
  const third = await rotate(fleet[1], second.id, 'none');
  assert.equal(third.overlapEndsAt, null);
  for (const gate of fleet) {
    for (const secret of [first, second.key]) await isRefused(gate, secret);
    await gate.send(third.key);
  }
});

test('a revoked key is refused by each of its secrets, and gets no other one', async () => {
  const fleet = await openFleet();
  const old = await fleet[0].newKey();
  const { key, id } = await rotate(fleet[0], 'test');
  for (const gate of fleet) for (const secret of [old, key]) await gate.send(secret);
  await fleet[1].command('keys revoke', { key: id });
  for (const gate of fleet) for (const secret of [old, key]) await isRefused(gate, secret);
  await assert.rejects(rotate(fleet[0], id), { kind: 'conflict', field: 'key' });
});

test('a key revoked while it gets another secret is refused at once on the process that has cached the new one', async () => {
  const [here, there] = await openFleet();
  await here.newKey();
  let made = '';
  // The command has read the key's hash; its secret is replaced before the revocation is written.
  const real = here.db.change.bind(here.db);
  here.db.change = async (...all) => {
    here.db.change = real;
    made = (await rotate(there, 'test')).key;
    await there.send(made);
    return real(...all);
  };
  await here.command('keys revoke', { key: 'test' });
  await isRefused(there, made);
});

test('at most four earlier secrets work, and one that has ended makes room', async () => {
  const [gate] = await openFleet();
  await gate.newKey();
  const { id } = await rotate(gate, 'test', '1h');
  for (let more = 0; more < 3; more++) await rotate(gate, id, '2h');
  await assert.rejects(rotate(gate, id, '1h'), { kind: 'conflict', field: 'key', message: /4 earlier secrets/ });
  const keys = async () => (await gate.command('keys list')).json as { replaced: object[]; rotatedAt: Date }[];
  assert.equal((await keys())[0]!.replaced.length, 4);
  gate.host.advance(hourMs);
  await rotate(gate, id, '1h');
  assert.equal((await keys())[0]!.replaced.length, 4);
  for (const overlap of ['soon', '31d', '-1h'])
    await assert.rejects(rotate(gate, id, overlap), { kind: 'invalid_request', field: 'overlap' });
});

test('lists show each secret by its first characters, with the end of the earlier one, and never a whole one', async () => {
  const [gate] = await openFleet();
  const old = await gate.newKey();
  const made = await rotate(gate, 'test', '1h');
  const end = gate.host.clock.now() + hourMs;
  const { rows } = await gate.host.get(accountAdmin).keys(gate.accountId, { limit: 5 });
  assert.partialDeepStrictEqual(rows, [
    { prefix: made.prefix, rotatedAt: end - hourMs, replaced: [{ prefix: old.slice(0, 14), endsAt: end }] },
  ]);
  const { text } = await gate.command('keys list');
  const minute = new Date(end).toISOString().slice(0, 16).replace('T', ' ');
  assert.ok(text.includes(`${made.prefix}…, ${old.slice(0, 14)}… until ${minute}Z`), text);
  for (const shown of [text, JSON.stringify(rows)])
    for (const secret of [old, made.key]) assert.ok(!shown.includes(secret));
  gate.host.advance(hourMs);
  const after = await gate.host.get(accountAdmin).keys(gate.accountId, { limit: 5 });
  assert.deepEqual(after.rows[0]!.replaced, []);
});

test("a name shared by keys names none of them, and other accounts' keys get no secret from an account", async () => {
  const [gate] = await openFleet();
  await gate.newKey();
  await gate.newKey();
  await assert.rejects(rotate(gate, 'test'), { kind: 'conflict', field: 'key' });
  const other = (await gate.book.create('other', 'pro')).id;
  const { id } = await gate.book.createKey(gate.accountId, { name: 'mine' });
  await assert.rejects(gate.host.get(accountAdmin).rotateKey(other, id, 0), { kind: 'not_found', field: 'key' });
});

test('an earlier secret ends in time though the list of secrets that keys are hashed with changes in the overlap', async () => {
  const db = await openEmbedded();
  const [first, second] = ['the first secret of all keys', 'the second secret of all keys'];
  const before = await openProcess(db, { secret: [first] });
  const old = await before.newKey();
  await before.send(old);
  const gate = await openProcess(db, { secret: [second, first] });
  // Its hash by the second secret is noted, and written only after the key has another one.
  await gate.send(old);
  const made = await rotate(gate, 'test', '1h');
  await gate.part.lifecycle!.stop!();
  for (const secret of [old, made.key]) await gate.send(secret);
  await gate.part.lifecycle!.stop!();
  await before.send(old);
  const alone = await openProcess(db, { secret: [second, first] });
  // By the second secret alone the one before is not found at all, so what was noted of it must not have been written.
  const last = await openProcess(db, { secret: [second] });
  for (const one of [before, gate, alone, last]) {
    one.host.advance(hourMs);
    await isRefused(one, old);
    await one.send(made.key);
  }
});
