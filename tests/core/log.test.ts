/** Log lines never carry what looks like a credential, nor the values of a failed statement. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { DrizzleQueryError } from 'drizzle-orm';
import { markPassing } from '../../core/contract/errors.ts';
import type { RegularWork } from '../../core/contract/host-tools.ts';
import { Outage } from '../../core/contract/outage.ts';
import { maskSecrets } from '../../core/contract/secret.ts';
import { createLog, describeError, logPrinted } from '../../core/gateway/log.ts';
import { regularWork } from '../../core/gateway/runtime.ts';
import { fc } from '../helpers/properties.ts';

const secrets = [
  'sk-gw-2ZipLQ8AXdWMZ3pre9oyXm8ZQkWn2S1hb5ogJvsJHS03NiQ1e',
  'sk-ant-api03-abcdefgh12345678',
  'AIzaSyA1234567890abcdefghijk',
  'xai-Abcdefghijklmnopqrstuvwxyz0123456789',
];

test('keys, bearer tokens and passwords in addresses are masked in any position', () => {
  for (const secret of secrets)
    assert.doesNotMatch(maskSecrets(`{"error":"refused key ${secret}, sorry"}`), new RegExp(secret.slice(8)));
  assert.equal(maskSecrets('Authorization: Bearer abcdefgh12345'), 'Authorization: Bearer ***');
  assert.equal(maskSecrets('postgres://user:hunter2@host/db'), 'postgres://user:***@host/db');
});

test('a key is masked in any surrounding, also in a text hardly longer than it', () => {
  const key = /\b(?:sk|pk|rk|gsk|sess)-[A-Za-z0-9_-]{8,}|(?<=\b[a-z]{2,4}-)[A-Za-z0-9]{24,}/g;
  const pieces = [
    'sk',
    'pk',
    'rk',
    'gsk',
    'sess',
    'xai',
    'or',
    '-',
    '-',
    '_',
    ' ',
    '"',
    'a1',
    'B2c3',
    '45678901',
    'Zy3'.repeat(8),
  ];
  const texts = fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(texts, (text) => {
      fc.pre(!text.includes('org-'));
      assert.equal(maskSecrets(text), text.replace(key, '***'));
    }),
    { numRuns: 20_000 },
  );
});

test('request ids, models and upstream ids are not masked', () => {
  for (const text of [
    '01a1fb42-cb79-7c30-bba7-ee81e0e34cd4',
    'grok-imagine-image-lite',
    'chatcmpl-a4f415550219000000000001',
    'claude-opus-4-5-20251101',
  ]) {
    assert.equal(maskSecrets(text), text);
  }
});

test('lines of every level are masked; a record is written unchanged', () => {
  const lines: string[] = [];
  const log = createLog('debug', (line) => void lines.push(line));
  for (const level of ['debug', 'info', 'warn', 'error'] as const)
    log[level]({ key: secrets[0] }, `with ${secrets[1]}`);
  for (const line of lines) for (const secret of secrets) assert(!line.includes(secret), line);
  log.record('request', JSON.stringify({ model: 'm' }));
  assert.equal(lines.length, 5);
  assert.deepEqual(JSON.parse(lines[4]!), { level: 'info', msg: 'request', model: 'm' });
});

test("a failed statement is logged with the database's message and the place of the call, without statement and values", async () => {
  const cause = Object.assign(new Error('no such table'), { code: '42P01', query: 'insert into t values ($1)' });
  const error = await failing(cause);
  const { message, code, stack, ...more } = describeError(error) as Record<string, unknown>;
  assert.deepEqual({ message, code, more }, { message: 'no such table', code: '42P01', more: { name: 'Error' } });
  assert.match(String(stack), /^ {4}at failing .*log\.test/);
  const wrapped = JSON.stringify(describeError(new Error('the ledger failed', { cause: error })));
  assert.match(wrapped, /the ledger failed.*42P01/);
  assert.doesNotMatch(wrapped, /insert|pepper|params/);
});

/** As the query builder does it: the values may have line ends of their own. */
async function failing(cause: Error): Promise<Error> {
  return new DrizzleQueryError('insert into t\nvalues ($1)', ['the\npepper\n    at home'], cause);
}

test('a passing failure is logged at once and then once a minute, by its sentence and work, without a stack', () => {
  const { lines, log, at } = clockedLog();
  const away = new DrizzleQueryError('select 1', [], markPassing(Object.assign(new Error('gone'), { code: 'EPIPE' })));
  for (let now = 0; now < 120_000; now += 250) {
    at(now);
    log.error({ error: away, work: 'write rows' }, 'an answer could not be kept');
    log.warn({ error: away }, 'a key could not be read');
    log.warn({ error: new Error('another') }, 'this does not pass');
  }
  assert.equal(lines().filter(({ msg }) => msg === 'this does not pass').length, 480);
  const error = { name: 'Error', message: 'gone', code: 'EPIPE' };
  assert.deepEqual(
    lines()
      .filter(({ msg }) => msg !== 'this does not pass')
      .map(({ msg, error, times }) => ({ msg, error, times })),
    [undefined, 239].flatMap((times) => [
      { msg: 'an answer could not be kept', error, times },
      { msg: 'a key could not be read', error, times },
    ]),
  );
});

/** The lines so far, and a log whose time is set by hand. */
function clockedLog() {
  const written: string[] = [];
  let now = 0;
  const clock = { now: () => now, monotonic: () => now };
  const log = createLog('info', (line) => void written.push(line), undefined, clock);
  const at = (ms: number) => {
    now = ms;
  };
  const lines = () => written.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { lines, log, clock, at };
}

test('an outage of a store is one line at its beginning, one a minute and one at its end, for all its failures', () => {
  const { lines, log, clock, at } = clockedLog();
  const outage = new Outage({
    clock,
    log,
    began: 'the shelf is away',
    over: 'the shelf is back',
    fields: { store: 'shelf' },
  });
  const failure = () => new DrizzleQueryError('select 1', [], outage.mark(markPassing(new Error('gone'))));
  const rounds = ['write rows', 'read rows'].map((name) =>
    regularWork({ clock, log }, name, () => {
      throw failure();
    }),
  );
  for (let now = 0; now < 150_000; now += 250) {
    at(now);
    log.warn({ error: failure() }, 'a key could not be read');
    for (const round of rounds) void round();
    outage.failed(failure());
  }
  outage.succeeded();
  outage.succeeded();
  assert.deepEqual(
    lines().map(({ msg, level, store, failures, seconds }) => ({ msg, level, store, failures, seconds })),
    [
      { msg: 'the shelf is away', level: 'error', failures: undefined, seconds: undefined },
      { msg: 'the shelf is away', level: 'error', failures: 961, seconds: 60 },
      { msg: 'the shelf is away', level: 'error', failures: 1_921, seconds: 120 },
      { msg: 'the shelf is back', level: 'info', failures: 2_400, seconds: 150 },
    ].map((line) => ({ ...line, store: 'shelf' })),
  );
});

test('occasional failures of a store whose watch succeeds are at most one line a minute; a new failure of the watch is logged at once', () => {
  const { lines, log, clock, at } = clockedLog();
  const outage = new Outage({ clock, log, began: 'away', over: 'back', fields: {} });
  for (let now = 0; now < 60_000; now += 250) {
    at(now);
    log.warn({ error: outage.mark(new Error('gone')) }, 'a key could not be read');
    outage.succeeded();
  }
  assert.deepEqual(
    lines().map(({ msg }) => msg),
    ['away', 'back'],
  );
  outage.failed(new Error('gone'));
  outage.succeeded();
  assert.deepEqual(
    lines().map(({ msg }) => msg),
    ['away', 'back', 'away', 'back'],
  );
});

test('an outage found first by other work is logged as soon as its watch fails, also within a minute of the last line', () => {
  const { lines, log, clock, at } = clockedLog();
  const outage = new Outage({ clock, log, began: 'away', over: 'back', fields: {} });
  for (const now of [0, 10_000]) {
    at(now);
    log.warn({ error: outage.mark(new Error('gone')) }, 'a key could not be read');
    outage.failed(new Error('gone'));
    outage.failed(new Error('gone'));
    outage.succeeded();
  }
  assert.deepEqual(
    lines().map(({ msg }) => msg),
    ['away', 'back', 'away', 'back'],
  );
});

test('an empty round of regular work is no success and ends no outage', async () => {
  const empty = {
    'no promise': () => undefined,
    'a promise of idle': async () => 'idle' as const,
  };
  for (const [kind, nothing] of Object.entries(empty)) {
    const { lines, log, clock, at } = clockedLog();
    let next: RegularWork = async () => {};
    const round = regularWork({ clock, log }, 'write rows', () => next());
    const fails = async () => {
      throw new Error('broken');
    };
    for (let now = 0; now < 100_000; now += 250) {
      at(now);
      next = now % 1_000 === 0 ? fails : nothing;
      await round();
    }
    next = async () => {};
    await round();
    await round();
    assert.deepEqual(
      lines().map(({ msg, work }) => [msg, work]),
      ['failed', 'failed', 'succeeds again'].map((end) => [`regular work ${end}`, 'write rows']),
      kind,
    );
  }
});

test('regular work that fails once and then does not has succeeded, and rounds do not overlap', async () => {
  const { lines, log, clock } = clockedLog();
  let fails = true;
  const sweep = regularWork({ clock, log }, 'sweep', () => {
    if (fails) throw new Error('broken');
  });
  await sweep();
  fails = false;
  await sweep();
  assert.deepEqual(
    lines().map(({ msg }) => msg),
    ['regular work failed', 'regular work succeeds again'],
  );
  let rounds = 0;
  const slow = regularWork({ clock, log }, 'slow', () => {
    rounds += 1;
    return new Promise<void>(() => {});
  });
  void slow();
  await slow();
  assert.equal(rounds, 1);
});

test('a slow reader gets whole lines and the number of dropped ones, in bounded memory', async () => {
  const script = `
    import { createLog } from './core/gateway/log.ts';
    const log = createLog('info');
    const row = JSON.stringify({ text: 'x'.repeat(1000) });
    let left = 40;
    const timer = setInterval(() => {
      for (let line = 0; line < 1000; line++) log.record('row', row);
      if (--left === 0) clearInterval(timer);
    }, 5);
    setTimeout(() => { log.record('late', row); setTimeout(() => process.exit(0), 500); }, 3000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.pause();
  await pause(1_500);
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stdout.resume();
  await new Promise((resolve) => child.stdout.on('end', resolve));
  const lines = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { msg: string; lines?: number });
  const dropped = lines.reduce((sum, line) => sum + (line.lines ?? 0), 0);
  assert(dropped > 0);
  assert.equal(lines.filter(({ msg }) => msg === 'row').length + dropped, 40_000);
  assert.equal(lines.at(-1)!.msg, 'late');
});

test('a changed level applies while lines are written, to records too', () => {
  const lines: string[] = [];
  const log = createLog('warn', (line) => void lines.push(line));
  const both = () => {
    log.info({}, 'a line');
    log.record('a record', '{"a":1}');
    return lines.splice(0).length;
  };
  assert.equal(both(), 0);
  log.setLevel('info');
  assert.equal(both(), 2);
  log.setLevel('error');
  assert.equal(both(), 0);
});

test('output of packages and Node is written as masked log lines', async (context) => {
  const lines: string[] = [];
  const own = { ...console };
  const listeners = process.listeners('warning');
  context.after(() => {
    Object.assign(console, own);
    process.removeAllListeners('warning');
    for (const listener of listeners) process.on('warning', listener);
  });
  if (listeners.length === 0) process.on('warning', () => {});
  logPrinted(createLog('warn', (line) => void lines.push(line)));
  console.warn('two sources of %s:\n  %s', 'credentials', secrets[0]);
  console.log({ a: 1 });
  process.emitWarning('this version ends', { type: 'NodeVersionSupportWarning', code: 'SDK01' });
  process.emitWarning('of Node', 'ExperimentalWarning');
  await new Promise(setImmediate);
  assert.deepEqual(
    lines.map((line) => ({ ...(JSON.parse(line) as object), time: undefined })),
    [
      { level: 'warn', text: 'two sources of credentials:\n  ***', msg: 'a package prints' },
      { level: 'warn', text: '{ a: 1 }', msg: 'a package prints' },
      {
        level: 'warn',
        ...{ warning: 'NodeVersionSupportWarning', code: 'SDK01', text: 'this version ends', msg: 'a package warns' },
      },
    ].map((line) => ({ ...line, time: undefined })),
  );
});
