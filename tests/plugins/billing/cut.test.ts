/** A journal cut anywhere: its whole lines count, once, and nothing else. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { nodeFiles } from '../../../plugins/billing/journal/segments.ts';
import { decodeLine, type JournalRecord } from '../../../plugins/billing/model/records.ts';
import { judgeInterrupted, replay } from '../../../plugins/billing/reservations/recovery.ts';
import {
  answer,
  enter,
  leaveWorlds,
  meterOf,
  newCall,
  newWorld,
  send,
  temporaryDirectory,
  usd,
  type World,
} from './world.ts';

after(leaveWorlds);

/** A short history: settled, voided, sent with progress, never sent. */
async function history(): Promise<{ world: World; lines: Buffer[] }> {
  const world = await newWorld({ credit: '1', section: { hold: { output_tokens: 50 } } });
  const [settled, voided, streaming] = [newCall(), newCall(), newCall()];
  await enter(world, settled);
  await enter(world, voided);
  await answer(settled, { input: 900, output: 20 });
  await world.tick('sync the journal');
  (await send(voided)).result = 'refused';
  await voided.end();
  await enter(world, streaming);
  await send(streaming);
  meterOf(streaming).observe(60);
  await world.tick('note progress');
  await enter(world, newCall());
  await world.tick('sync the journal');
  const lines = linesOf(Buffer.from(world.journalText()));
  const lengths = lines.map((line) => recordsOf(line).length);
  assert.ok(lines.length >= 5 && Math.max(...lengths) > 1 && Math.min(...lengths) === 1, `lines of ${lengths}`);
  return { world, lines };
}

function linesOf(text: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < text.length; from = text.indexOf(0x0a, from) + 1) {
    lines.push(text.subarray(from, text.indexOf(0x0a, from) + 1));
  }
  return lines;
}

function recordsOf(line: Buffer): readonly JournalRecord[] {
  return decodeLine(line.subarray(0, -1))!.records;
}

/** What a journal charges, by the plainest reading of its records. */
function chargesOf(records: JournalRecord[]): Map<string, string> {
  const charges = new Map<string, string>();
  for (const { id } of records.filter(({ kind }) => kind === 'HOLD')) {
    const own = records.filter((record) => record.id === id);
    const end = own.find((record) => record.kind === 'SETTLE' || record.kind === 'VOID');
    const seen = Math.max(0, ...own.map((record) => (record.kind === 'PROGRESS' ? record.output : 0)));
    const sent = own.some((record) => record.kind === 'SENT' || (record.kind === 'HOLD' && record.sent !== undefined));
    const interrupted = sent ? `settle ${1_000} ${seen}` : 'void';
    charges.set(id, end === undefined ? interrupted : end.kind === 'SETTLE' ? `settle ${end.cost}` : 'void');
  }
  return charges;
}

test('a journal cut at any byte recovers exactly the records of its whole lines, from any cursor', async () => {
  const { world, lines } = await history();
  const whole = Buffer.concat(lines);
  const directory = temporaryDirectory();
  const path = join(directory, '0000000000000001.journal');
  for (let length = 0; length <= whole.length; length += 1) {
    let kept = 0;
    for (let bytes = 0; kept < lines.length && bytes + lines[kept]!.length <= length; kept += 1)
      bytes += lines[kept]!.length;
    const records = lines.slice(0, kept).flatMap(recordsOf);
    // The cursor stands behind a line: lines are applied whole.
    const applied = lines.slice(0, length % (kept + 1)).flatMap(recordsOf).length;
    writeFileSync(path, whole.subarray(0, length));
    const { next, stretches, open } = replay(nodeFiles, directory, applied);
    assert.equal(next, records.length + 1);
    const charges = new Map<string, string>();
    for (const { slab, from, to } of stretches) {
      for (const record of linesOf(slab.subarray(from, to)).flatMap(recordsOf)) {
        if (record.kind === 'SETTLE') charges.set(record.id, `settle ${record.cost}`);
        if (record.kind === 'VOID') charges.set(record.id, 'void');
      }
    }
    for (const hold of open) {
      const { verdict } = judgeInterrupted(hold);
      const usage = verdict.kind === 'SETTLE' ? verdict.usage : undefined;
      charges.set(hold.terms.id, usage === undefined ? 'void' : `settle ${usage.input} ${usage.output}`);
    }
    const beyond = new Set(
      records.slice(0, applied).flatMap(({ kind, id }) => (kind === 'SETTLE' || kind === 'VOID' ? [id] : [])),
    );
    const expected = [...chargesOf(records)].filter(([id]) => !beyond.has(id)).sort();
    assert.deepEqual([...charges].sort(), expected);
  }
  await world.stop();
});

test('a journal cut after any line recovers to a clean audit, twice over, with the charges of its records', async () => {
  const { world, lines } = await history();
  await world.stop();
  const source = join(world.directory, 'journal', world.host.schema);
  const first = join(source, '0000000000000001.journal');
  const name = readFileSync(join(source, 'name'), 'utf8');
  const prices = [2_000n, 10_000n] as const;
  for (let kept = 0; kept <= lines.length; kept += 1) {
    const directory = temporaryDirectory();
    const fresh = await newWorld({ directory, idle: true });
    const target = join(directory, 'journal', fresh.host.schema);
    cpSync(first, join(target, '0000000000000001.journal'), { recursive: true });
    const torn = lines[kept]?.subarray(0, 30) ?? Buffer.alloc(0);
    writeFileSync(join(target, '0000000000000001.journal'), Buffer.concat([...lines.slice(0, kept), torn]));
    writeFileSync(join(target, 'name'), name);
    // The database has seen an earlier run of this journal.
    const cursor = sql`insert into ${fresh.table('journal_cursor')} (journal, owner, updated_at) values (${name.trim()}, 'earlier', now())`;
    await fresh.rows(cursor);
    await fresh.credit('1');
    await fresh.part.lifecycle!.start!();
    const records = lines.slice(0, kept).flatMap(recordsOf);
    let spent = 0n;
    for (const charge of chargesOf(records).values()) {
      const [, left, right] = charge.split(' ');
      if (right !== undefined) spent += BigInt(left!) * prices[0] + BigInt(right) * prices[1];
      else if (left !== undefined) spent += BigInt(left);
    }
    assert.equal(await fresh.balance(), usd('1') - spent, `after ${kept} lines`);
    await using again = await fresh.crash();
    assert.equal(await again.balance(), usd('1') - spent);
    // It has seen none of these lines: it counts as put back.
    const { violations } = await again.audit();
    assert.deepEqual(
      violations.filter(({ rule }) => rule !== 'R1'),
      [],
    );
  }
});
