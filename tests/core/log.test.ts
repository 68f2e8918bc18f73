/** Log lines never carry what looks like a credential, nor the values of a failed statement. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { DrizzleQueryError } from 'drizzle-orm';
import { markPassing } from '../../core/contract/errors.ts';
import { maskSecrets } from '../../core/contract/secret.ts';
import { createLog, describeError } from '../../core/gateway/log.ts';
import { fc } from '../helpers/properties.ts';

const secrets = [
  'sk-gw-2ZipLQ8AXdWMZ3pre9oyXm8ZQkWn2S1hb5ogJvsJHS03NiQ1e',
  'sk-ant-api03-abcdefgh12345678',
  'AIzaSyA1234567890abcdefghijk',
  'xai-Abcdefghijklmnopqrstuvwxyz0123456789',
];

test('keys, bearer tokens and passwords in addresses are masked wherever they stand', () => {
  for (const secret of secrets)
    assert.doesNotMatch(maskSecrets(`{"error":"refused key ${secret}, sorry"}`), new RegExp(secret.slice(8)));
  assert.equal(maskSecrets('Authorization: Bearer abcdefgh12345'), 'Authorization: Bearer ***');
  assert.equal(maskSecrets('postgres://user:hunter2@host/db'), 'postgres://user:***@host/db');
});

test('a key is masked whatever stands around it, also where its text is hardly longer than it', () => {
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

test('request ids, models and upstream ids stay readable', () => {
  for (const text of [
    '01a1fb42-cb79-7c30-bba7-ee81e0e34cd4',
    'grok-imagine-image-lite',
    'chatcmpl-a4f415550219000000000001',
    'claude-opus-4-5-20251101',
  ]) {
    assert.equal(maskSecrets(text), text);
  }
});

test('lines of every level are masked; a record is written as it is given', () => {
  const lines: string[] = [];
  const log = createLog('debug', (line) => void lines.push(line));
  for (const level of ['debug', 'info', 'warn', 'error'] as const)
    log[level]({ key: secrets[0] }, `with ${secrets[1]}`);
  for (const line of lines) for (const secret of secrets) assert(!line.includes(secret), line);
  log.record('request', JSON.stringify({ model: 'm' }));
  assert.equal(lines.length, 5);
  assert.deepEqual(JSON.parse(lines[4]!), { level: 'info', msg: 'request', model: 'm' });
});

test('of a failed statement the log has what the database said and where it was asked, no statement, no values', async () => {
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

test('a failure that passes is told at once and then twice a minute, by its sentence and work, without a stack', () => {
  const lines: string[] = [];
  let now = 0;
  const log = createLog('info', (line) => void lines.push(line), undefined, { monotonic: () => now });
  const away = new DrizzleQueryError('select 1', [], markPassing(Object.assign(new Error('gone'), { code: 'EPIPE' })));
  for (; now < 60_000; now += 250) {
    log.error({ error: away, work: 'write rows' }, 'regular work failed');
    log.warn({ error: away }, 'a key could not be read');
    log.warn({ error: new Error('another') }, 'this does not pass');
  }
  const told = lines.splice(0).map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(told.filter(({ msg }) => msg === 'this does not pass').length, 240);
  const failures = told.filter(({ msg }) => msg !== 'this does not pass');
  const error = { name: 'Error', message: 'gone', code: 'EPIPE' };
  assert.deepEqual(
    failures.map(({ msg, error, times }) => ({ msg, error, times })),
    [undefined, 119].flatMap((times) => [
      { msg: 'regular work failed', error, times },
      { msg: 'a key could not be read', error, times },
    ]),
  );
  log.error({ error: away, work: 'read rows' }, 'regular work failed');
  now += 8_000;
  log.error({ error: away, work: 'write rows' }, 'regular work failed');
  log.info({ ends: 'regular work failed', work: 'write rows' }, 'regular work succeeds again');
  log.error({ error: away, work: 'write rows' }, 'regular work failed');
  log.error({ error: away, work: 'write rows' }, 'regular work failed');
  assert.equal(lines.length, 4, 'other work, and another outage, are told at once');
});

test('a reader that falls behind gets whole lines and the number of dropped ones; memory stays bounded', async () => {
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

test('the level may change while lines are written, for records too', () => {
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
