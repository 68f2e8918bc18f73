/** Alerts of processes that share a database: begun once, sent once, ended by what all of them see. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { Rule } from '../../../plugins/alerts/config.ts';
import { Deliveries, mostAttempts } from '../../../plugins/alerts/deliveries.ts';
import { Engine } from '../../../plugins/alerts/engine.ts';
import { AlertRows } from '../../../plugins/alerts/rows.ts';
import type { AlertKind, AlertMessage, Measurement } from '../../../plugins/common/domain/admin/alerts.ts';
import { Refused } from '../../../plugins/common/kit/fetch/post.ts';
import { openDatabase } from '../../helpers/database.ts';
import { type FakeHost, fakeHost } from '../../helpers/fakes.ts';

interface Node {
  readonly engine: Engine;
  /** What it observes. */
  seen: Measurement[];
  written: number;
}

const everyMs = 30_000;

/** Processes with one clock and a database of their own. */
async function fleet(
  size: number,
  more: { observe?: never; measure?: () => Promise<Measurement[]> } = {},
  limits: Partial<Rule> = {},
) {
  const database = await openDatabase({ plugins: ['alerts'] });
  const clock = fakeHost();
  const sent: AlertMessage[] = [];
  const rows = new AlertRows(database);
  let fault: Error | undefined;
  let isAway = false;
  const nodes = Array.from({ length: size }, (): Node => {
    const random = { bytes: randomBytes, fraction: Math.random };
    const host: FakeHost = { ...fakeHost(), clock: clock.clock, log: clock.log, random };
    const sink = {
      async send(message: AlertMessage) {
        if (fault !== undefined) throw fault;
        sent.push(message);
      },
    };
    const deliveries = new Deliveries(host, rows, () => sink);
    const node: Node = { engine: undefined as never, seen: [], written: 0 };
    const kind: AlertKind = {
      name: 'thing',
      title: 'A thing is wrong',
      unit: 'count',
      bad: 'above',
      defaults: { threshold: 0, clear: 0, windowMs: 600_000, forMs: 0, quietMs: 0, least: 0 },
      observe: () => node.seen,
      ...more,
    };
    const rule: Rule = { name: 'thing', kind, ...kind.defaults, repeatMs: 3_600_000, sinks: ['one'], ...limits };
    const options = { everyMs: () => everyMs, rules: () => [rule], written: () => node.written, isAway: () => isAway };
    return Object.assign(node, { engine: new Engine(host, rows, deliveries, options) });
  });
  const round = async (times = 1) => {
    for (let count = 0; count < times; count++) {
      clock.advance(everyMs);
      await Promise.all(nodes.map(({ engine }) => engine.look()));
    }
  };
  const list = async () => (await rows.list({ rule: 'thing' }, { limit: 100 })).rows;
  const refuse = (error: Error | undefined) => {
    fault = error;
  };
  const leave = (away: boolean) => {
    isAway = away;
  };
  return { nodes, sent, round, list, rows, refuse, leave, clock };
}

const events = (sent: readonly AlertMessage[]) => sent.map(({ event, subject }) => `${event} ${subject}`);

test('an alert of two processes begins once, is sent once, and ends when neither measures it', async () => {
  const { nodes, sent, round, list } = await fleet(3);
  const open = { subject: 'vendor/m', value: 1 };
  nodes[0]!.seen = [open];
  nodes[1]!.seen = [open];
  await round(4);
  assert.deepEqual(events(sent), ['begin vendor/m']);
  nodes[0]!.seen = [];
  await round(4);
  assert.deepEqual(events(sent), ['begin vendor/m'], 'the other one sees it still');
  nodes[1]!.seen = [];
  await round(6);
  assert.deepEqual(events(sent), ['begin vendor/m', 'end vendor/m']);
  const [row] = await list();
  assert.ok(row!.endedAt! > row!.beganAt);
  assert.equal(sent[0]!.id, sent[1]!.id);
});

test('the measurement of a vanished process expires', async () => {
  const { nodes, sent, round } = await fleet(2);
  nodes[0]!.seen = [{ subject: 'vendor/m', value: 1 }];
  await round(2);
  const [, survivor] = nodes;
  nodes.splice(0, 1);
  survivor!.written++;
  await round(8);
  assert.deepEqual(events(sent), ['begin vendor/m', 'end vendor/m']);
});

test('without events, rows and open alerts no statement is sent to the database', async () => {
  const { nodes, round, rows } = await fleet(1);
  await round(3);
  let requestCount = 0;
  const count = (name: 'report' | 'takeLease' | 'open') => {
    const own = rows[name].bind(rows) as (...given: never[]) => Promise<never>;
    rows[name] = ((...given: never[]) => {
      requestCount++;
      return own(...given);
    }) as never;
  };
  for (const name of ['report', 'takeLease', 'open'] as const) count(name);
  await round(20);
  assert.equal(requestCount, 0);
  nodes[0]!.written++;
  await round(20);
  assert.ok(requestCount > 0 && requestCount <= 8, `${requestCount} statements for one request`);
});

test('rules whose rows take long to read wait in between, and are evaluated once more after the last request', async () => {
  let evaluations = 0;
  const slow = await fleet(1, {
    observe: undefined as never,
    async measure() {
      evaluations++;
      slow.clock.advance(10_000);
      return [];
    },
  });
  for (let rounds = 0; rounds < 30; rounds++) {
    slow.nodes[0]!.written++;
    await slow.round(1);
  }
  // 30 rounds of 30 seconds, and 10 seconds for each evaluation, of which one comes within 100 seconds at most.
  assert.ok(evaluations >= 6 && evaluations <= 11, `${evaluations} evaluations`);
  slow.nodes[0]!.written++;
  await slow.round(1);
  const before = evaluations;
  await slow.round(20);
  assert.ok(
    evaluations > before && evaluations <= before + 2,
    `${evaluations - before} evaluations after the last request`,
  );
});

test('a failing sink is tried a bounded number of times, and its fault is kept without quotations', async () => {
  const { nodes, sent, round, rows, refuse, clock } = await fleet(1);
  refuse(new Refused('it answered 500'));
  nodes[0]!.seen = [{ subject: 'vendor/m', value: 1 }];
  await round(1);
  assert.deepEqual((await rows.lastOfSinks(mostAttempts)).get('one')!.last!.fault, 'it answered 500');
  refuse(new Error('connect to https://hooks.example/secret-token failed'));
  for (let hours = 0; hours < 12; hours++) {
    clock.advance(3_600_000 - everyMs);
    await round(1);
  }
  const last = (await rows.lastOfSinks(mostAttempts)).get('one')!;
  assert.equal(last.last!.fault, 'it failed');
  assert.ok(clock.lines.some(({ message }) => message === 'an alert was given up: its sink takes nothing'));
  assert.ok(clock.lines.every(({ fields }) => !JSON.stringify(fields).includes('secret-token')));
  const tries = clock.lines.filter(({ fields }) => 'attempt' in fields);
  assert.ok(tries.every(({ fields }) => (fields as { attempt: number }).attempt <= mostAttempts));
  refuse(undefined);
  await round(1);
  assert.ok(sent.length <= 1);
});

test('an event that one process reports is an alert in every process until its time is over', async () => {
  const { nodes, sent, round } = await fleet(2, { observe: undefined as never });
  nodes[1]!.engine.report('thing', 'evil\n\u202Emodel', { calls: 2, model: `evil\n${'x'.repeat(10_000)}` });
  await round(5);
  assert.deepEqual(events(sent), ['begin evil model']);
  assert.deepEqual(sent[0]!.fields, { calls: 2, model: `evil ${'x'.repeat(114)}…` });
  await round(22);
  assert.deepEqual(events(sent), ['begin evil model', 'end evil model']);
});

test('an acknowledged alert is not repeated, and an unknown one cannot be acknowledged', async () => {
  const { nodes, sent, round, rows, list } = await fleet(1, {}, { repeatMs: 2 * everyMs });
  nodes[0]!.seen = [{ subject: 'vendor/m', value: 1 }];
  await round(4);
  assert.deepEqual(events(sent), ['begin vendor/m', 'repeat vendor/m']);
  const [row] = await list();
  assert.equal(await rows.acknowledge(row!.id, 'oscar', 'seen', 1_800_000_000_000), true);
  await round(6);
  assert.equal(sent.length, 2);
  assert.deepEqual((await list())[0]!.acknowledged, { at: 1_800_000_000_000, by: 'oscar', reason: 'seen' });
  assert.equal(await rows.acknowledge('nothing', 'oscar', 'seen', 0), false);
});

test('a measurement that fails neither begins nor ends an alert', async () => {
  let isDown = false;
  const measure = async () => {
    if (isDown) throw new Error('the database is away');
    return [{ subject: 'm', value: 1 }];
  };
  const { nodes, sent, round } = await fleet(1, { observe: undefined as never, measure });
  nodes[0]!.written++;
  await round(1);
  isDown = true;
  await round(3);
  assert.deepEqual(events(sent), ['begin m']);
});

test('the open subjects of a rule are bounded, whatever names clients use', async () => {
  const measure = async () => Array.from({ length: 1_000 }, (_, index) => ({ subject: `m${index}`, value: 1 }));
  const { nodes, round, rows } = await fleet(1, { observe: undefined as never, measure }, { sinks: [] });
  nodes[0]!.written++;
  await round(1);
  const open = await rows.open();
  assert.equal(open.length, 200);
});

test("lists are paged, filtered by time and subject, and an unreadable cursor is the caller's mistake", async () => {
  const { nodes, round, rows, clock } = await fleet(1);
  nodes[0]!.seen = ['a', 'b', 'c'].map((subject) => ({ subject, value: 1 }));
  await round(1);
  const first = await rows.list({ rule: 'thing' }, { limit: 2 });
  const second = await rows.list({ rule: 'thing' }, { limit: 2, after: first.next });
  assert.deepEqual([...first.rows, ...second.rows].map(({ subject }) => subject).toSorted(), ['a', 'b', 'c']);
  assert.equal(second.next, undefined);
  const now = clock.clock.now();
  const found = async (filter: object) => (await rows.list({ rule: 'thing', ...filter }, { limit: 9 })).rows.length;
  assert.deepEqual(
    [
      await found({ subject: 'B' }),
      await found({ until: now - 1 }),
      await found({ from: now + 9_999_999 }),
      await found({ running: false }),
    ],
    [1, 0, 3, 0],
  );
  await assert.rejects(rows.list({}, { limit: 2, after: "x'; drop" }), { field: 'after' });
});

test('while the database is away each process sends its own alerts; afterwards they are one alert, which ends once', async () => {
  const { nodes, sent, round, list, rows, leave } = await fleet(2);
  const requested = ['report', 'takeLease', 'open', 'begin'] as const;
  leave(true);
  const own = requested.map((name) => [name, rows[name]] as const);
  for (const name of requested) rows[name] = () => assert.fail('the database is asked');
  for (const node of nodes) node.seen = [{ subject: 'database', value: 1 }];
  await round(3);
  assert.deepEqual(events(sent), ['begin database', 'begin database']);
  assert.equal(new Set(sent.map(({ id }) => id)).size, 1, 'those who get both see that they are one');
  for (const [name, work] of own) rows[name] = work as never;
  leave(false);
  for (const node of nodes) node.seen = [];
  await round(6);
  assert.deepEqual(events(sent), ['begin database', 'begin database', 'end database']);
  const [row, ...others] = await list();
  assert.deepEqual([row!.subject, row!.id, others.length], ['database', sent[0]!.id, 0]);
  assert.equal(sent[2]!.id, sent[0]!.id);
  assert.ok(row!.endedAt! > row!.beganAt);
});

test('an alert from before the outage is not sent again, and one that begins and ends within it is kept', async () => {
  const { nodes, sent, round, list, leave } = await fleet(1);
  const [node] = nodes;
  const vendor = { subject: 'vendor/m', value: 1 };
  node!.seen = [vendor];
  await round(3);
  leave(true);
  node!.seen = [vendor, { subject: 'database', value: 1 }];
  await round(2);
  node!.seen = [vendor];
  await round(2);
  assert.deepEqual(events(sent), ['begin vendor/m', 'begin database', 'end database']);
  leave(false);
  await round(3);
  assert.equal(sent.length, 3);
  const kept = await list();
  assert.deepEqual(
    kept.map(({ subject, endedAt }) => [subject, endedAt !== undefined]),
    [
      ['database', true],
      ['vendor/m', false],
    ],
  );
});

test('a sink that is away too gets the alert when it returns, also after the database', async () => {
  const { nodes, sent, round, refuse, leave } = await fleet(1);
  leave(true);
  refuse(new Refused('away'));
  nodes[0]!.seen = [{ subject: 'database', value: 1 }];
  await round(2);
  assert.deepEqual(sent, []);
  refuse(undefined);
  leave(false);
  await round(2);
  assert.deepEqual(events(sent), ['begin database']);
});
