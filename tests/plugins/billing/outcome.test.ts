/** What each outcome of a chat call costs the client: the table, row by row, through the plugin and the database. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Outcome } from '../../../core/contract/contract.ts';
import { judge } from '../../../plugins/billing/reservations/outcome.ts';
import { type Attempt, attempts, type UsageReport, usageReport } from '../../../plugins/common/domain/calls.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { attemptOf, entered, leaveWorlds, limits, meterOf, newWorld, report, send } from './world.ts';

after(leaveWorlds);

interface Row {
  outcome: string;
  /** Results of the attempts that were sent, in order. */
  sent: Attempt['result'][];
  /** The last one failed while the client waited. */
  failedFirst?: true;
  report?: UsageReport;
  seen?: number;
  end: Outcome['kind'];
  /** The row that ends the request, its reason, and its cost in nano-USD; for a settlement whether it is marked as estimated. */
  expect: { kind: 'SETTLE' | 'VOID'; reason: string; cost: string; estimated?: boolean };
}

const actual = report({ input: 900, output: 50 });
const guess = report({ input: 1_000, output: 60 }, { estimated: true, terminal: false });
const table: Row[] = [
  {
    outcome: 'never sent',
    sent: [],
    end: 'failed',
    expect: { kind: 'VOID', reason: 'not_sent', cost: '0' },
  },
  {
    outcome: 'handed over, but nothing left',
    sent: ['not_sent'],
    end: 'failed',
    expect: { kind: 'VOID', reason: 'not_sent', cost: '0' },
  },
  {
    outcome: 'client left before anything was sent',
    sent: [],
    end: 'client_left',
    expect: { kind: 'VOID', reason: 'not_sent', cost: '0' },
  },
  {
    outcome: 'refused by the upstream without usage',
    sent: ['refused'],
    end: 'complete',
    expect: { kind: 'VOID', reason: 'refused', cost: '0' },
  },
  {
    outcome: 'of unknown outcome at first, then refused elsewhere',
    sent: ['unknown', 'refused'],
    end: 'complete',
    expect: { kind: 'VOID', reason: 'unknown', cost: '0' },
  },
  {
    outcome: 'refused at first, then answered elsewhere',
    sent: ['refused', 'answered'],
    report: actual,
    end: 'complete',
    expect: { kind: 'SETTLE', reason: 'answered', cost: '2300000', estimated: false },
  },
  {
    outcome: 'broken off before the head',
    sent: ['unknown'],
    end: 'failed',
    expect: { kind: 'VOID', reason: 'unknown', cost: '0' },
  },
  {
    outcome: 'broken off before the head, with an estimate of what it may have consumed',
    sent: ['unknown'],
    report: guess,
    end: 'failed',
    expect: { kind: 'VOID', reason: 'unknown', cost: '0' },
  },
  {
    outcome: 'refused by the upstream, with an estimate of what it may have consumed',
    sent: ['refused'],
    report: guess,
    end: 'complete',
    expect: { kind: 'VOID', reason: 'refused', cost: '0' },
  },
  {
    outcome: 'still running when the exchange failed',
    sent: ['running'],
    end: 'failed',
    expect: { kind: 'VOID', reason: 'unknown', cost: '0' },
  },
  {
    outcome: 'complete with usage',
    sent: ['answered'],
    report: actual,
    end: 'complete',
    expect: { kind: 'SETTLE', reason: 'answered', cost: '2300000', estimated: false },
  },
  {
    outcome: 'complete without usage, as the tap estimates it',
    sent: ['answered'],
    report: guess,
    end: 'complete',
    expect: { kind: 'SETTLE', reason: 'answered', cost: '2600000', estimated: true },
  },
  {
    outcome: 'complete without any report (usage missing from a stream counted as 0)',
    sent: ['answered'],
    seen: 70,
    end: 'complete',
    expect: { kind: 'SETTLE', reason: 'no_usage', cost: '2700000', estimated: true },
  },
  {
    outcome: 'a report without a single count',
    sent: ['answered'],
    report: report({}),
    end: 'complete',
    expect: { kind: 'SETTLE', reason: 'no_usage', cost: '2000000', estimated: true },
  },
  {
    outcome: 'stream cut by the upstream after output',
    sent: ['answered'],
    report: guess,
    end: 'failed',
    expect: { kind: 'SETTLE', reason: 'cut', cost: '2600000', estimated: true },
  },
  {
    outcome: 'client left in mid-stream (lost usage on disconnect)',
    sent: ['answered'],
    report: guess,
    end: 'client_left',
    expect: { kind: 'SETTLE', reason: 'client_left', cost: '2600000', estimated: true },
  },
  {
    outcome: 'client left after the terminal event',
    sent: ['answered'],
    report: actual,
    end: 'client_left',
    expect: { kind: 'SETTLE', reason: 'client_left', cost: '2300000', estimated: false },
  },
  {
    outcome: 'client left after the request was sent, before the head',
    sent: ['running'],
    end: 'client_left',
    expect: { kind: 'SETTLE', reason: 'client_left', cost: '2000000', estimated: true },
  },
  {
    outcome: 'client left after the upstream had broken off before the head',
    sent: ['unknown'],
    failedFirst: true,
    end: 'client_left',
    expect: { kind: 'VOID', reason: 'unknown', cost: '0' },
  },
  {
    outcome: 'client left while the upstream had refused',
    sent: ['refused'],
    end: 'client_left',
    expect: { kind: 'VOID', reason: 'refused', cost: '0' },
  },
];

test('every row of the outcome table has its cost, and leaves one end, its usage row and its attempts', async (t) => {
  const world = await newWorld({ credit: '1' });
  for (const row of table) {
    await t.test(row.outcome, async () => {
      const before = await world.balance();
      const exchange = await entered(world);
      for (const result of row.sent) (await send(exchange)).result = result;
      if (row.failedFirst) exchange.get(attempts).at(-1)!.failedFirst = true;
      if (row.seen !== undefined) assert.equal(meterOf(exchange).observe(row.seen), true);
      if (row.report !== undefined) exchange.set(usageReport, row.report);
      await exchange.end({ kind: row.end });
      await world.tick('write the ledger');
      assert.equal(before - (await world.balance()), BigInt(row.expect.cost));
      const { estimated, kind, ...end } = row.expect;
      const [known, ...others] = await world.rows<Record<string, unknown> & { attempts: { result: string }[] }>(
        sql`select case when settled then 'SETTLE' else 'VOID' end as kind, reason, cost::text, estimated,
              ${world.table('attempts_of')}(attempts, provider, target_model) as attempts
            from ${world.table('calls')} where id = ${exchange.id}`,
      );
      assert.deepEqual(others, []);
      const { attempts: tried, ...call } = known!;
      assert.deepEqual(call, { kind, ...end, estimated: estimated ?? false });
      const charges = await world.rows(
        sql`select kind, (-amount)::text as cost from ${world.table('movements')} where request_id = ${exchange.id}`,
      );
      assert.deepEqual(charges, end.cost === '0' ? [] : [{ kind: 'CHARGE', cost: end.cost }]);
      const free = end.reason === 'unknown' ? 'in_vain' : 'free';
      assert.equal(await world.host.get(ledger).endOf(exchange.id), kind === 'SETTLE' ? 'charged' : free);
      const sent = row.sent.filter((result) => result !== 'not_sent');
      assert.deepEqual(
        tried.map(({ result }) => result),
        sent.map((result) => (result === 'running' ? 'unknown' : result)),
      );
    });
  }
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('an attempt that the router counts and that never reached the socket is not charged', () => {
  const first = attemptOf('refused', 1);
  const sent = [{ kind: 'SENT' as const, id: 'x', at: 0, ...first }];
  const ending = { sent, report: undefined, outcome: 'client_left' as const, ...limits(10) };
  const verdict = judge({ ...ending, attempts: [first, attemptOf('running', 2)] });
  assert.deepEqual(verdict, { kind: 'VOID', reason: 'not_sent' });
});

test('a refusal that reports real usage is charged for it', () => {
  const first = attemptOf('refused', 1);
  const sent = [{ kind: 'SENT' as const, id: 'x', at: 0, ...first }];
  const verdict = judge({
    attempts: [first],
    sent,
    report: report({ input: 12, output: 0 }),
    outcome: 'complete',
    ...limits(10),
  });
  assert.equal(verdict.kind, 'SETTLE');
});
