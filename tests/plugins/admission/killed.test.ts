/** Reservations of durable rules whose process was killed: ended at its next start, by what its journal has charged. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setUpAdmission } from '../../../plugins/admission/index.ts';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { type AdmissionEnd, type AdmissionRule, admission } from '../../../plugins/common/wire/admission-rules.ts';
import { fakeHost, okAnswer } from '../../helpers/fakes.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { MemoryRows } from './memory-rows.ts';
import { exchangeOf, noting } from './world.ts';

type EndOf = 'charged' | 'free' | 'in_vain' | 'open' | undefined;

const directory = temporaryDirectory('admission-');
after(async () => {
  const { rm } = await import('node:fs/promises');
  await rm(directory, { recursive: true, force: true });
});

/** One run of a process on this directory and table. */
async function run(rows: MemoryRows, rule: AdmissionRule, endOf: EndOf) {
  const host = fakeHost({ directory });
  host.extend(admission, rule);
  host.extend(admission, noting('in memory', []));
  host.provide(ledger, { endOf: async () => endOf } as never);
  host.provide(ledgerQueries, { charge: async () => ({ cost: money(9n), usage: { input: 3 } }) } as never);
  const instance = setUpAdmission(host, { within: 1_000, broken: 'refuse' }, rows);
  await instance.lifecycle!.start!();
  return { host, instance, sweep: async () => host.intervals[0]!.work() };
}

const ends: Record<string, readonly [EndOf, AdmissionEnd | 'released' | undefined]> = {
  'was charged': ['charged', { outcome: 'failed', cost: money(9n), usage: { input: 3 } }],
  'may have run, and was not charged': ['in_vain', { outcome: 'failed', cost: money(0n), usage: undefined }],
  'was never sent': ['free', 'released'],
  'is not posted yet': [undefined, undefined],
};
for (const [title, [endOf, expected]] of Object.entries(ends)) {
  test(`a call that ${title}: at the next start its durable reservation is ended once`, async () => {
    const rows = new MemoryRows();
    const seen: (AdmissionEnd | 'released')[] = [];
    const rule = noting('durable', [], {
      durable: true,
      settle: (_text, _call, end) => void seen.push(end),
      release: () => void seen.push('released'),
    });
    const killed = await run(rows, rule, endOf);
    await killed.instance.handle!(exchangeOf(), async () => okAnswer);
    const next = await run(rows, rule, endOf);
    await next.sweep();
    await next.sweep();
    assert.deepEqual(seen, expected === undefined ? [] : [expected]);
    next.host.advance(60_001);
    await next.sweep();
    assert.deepEqual(seen, [expected ?? 'released']);
    await (await run(rows, rule, endOf)).sweep();
    assert.equal(seen.length, 1);
  });
}
