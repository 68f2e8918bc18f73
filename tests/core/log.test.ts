/** Log lines never carry what looks like a credential, nor the values of a failed statement. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createLog, describeError } from '../../core/log.ts';
import { maskSecrets } from '../../core/secret.ts';

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

test('an error is told with its cause and without the values of its statement', () => {
  const cause = Object.assign(new Error('no such table'), { code: '42P01' });
  const error = new Error('Failed query: insert into t values ($1)\nparams: the pepper', { cause });
  const told = JSON.stringify(describeError(error));
  assert.match(told, /Failed query/);
  assert.match(told, /42P01/);
  assert.doesNotMatch(told, /the pepper/);
});

test('a reader that falls behind gets whole lines and is told how many were dropped; memory stays bounded', async () => {
  const script = `
    import { createLog } from './core/log.ts';
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
