/** Seals: what was sealed comes back to its account alone, and nothing else opens. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { systemRandom } from '../../../core/gateway/system.ts';
import { isSealed } from '../../../plugins/protocol-convert/encoding/sealed-text.ts';
import { Sealer } from '../../../plugins/protocol-convert/translate/seal.ts';
import { fc } from '../../helpers/properties.ts';

const sealer = await Sealer.open('/nonexistent', 'a secret of the tests', systemRandom);

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'seal-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('a sealed value comes back unchanged, whatever it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), fc.string(), (value, maker, accountId) => {
      const text = sealer.seal({ maker, value }, accountId);
      assert.match(text, /^gw1\.[\w-]+$/);
      assert.ok(isSealed(text));
      assert.deepEqual(sealer.open(text, accountId), { maker, value });
    }),
  );
});

test('no two seals are alike, and none shows what it holds', () => {
  const opaqueState = { maker: 'maker', value: 'signature' };
  const texts = new Set(Array.from({ length: 100 }, () => sealer.seal(opaqueState, 'a')));
  assert.equal(texts.size, 100);
  for (const text of texts) {
    assert.ok(!Buffer.from(text.slice(4), 'base64url').includes('signature'));
    assert.ok(!Buffer.from(text.slice(4), 'base64url').includes('maker'));
  }
});

test('another account, another secret or another purpose opens nothing', async () => {
  const text = sealer.seal({ maker: 'm', value: 'v' }, 'a');
  assert.equal(sealer.open(text, 'b'), undefined);
  const other = await Sealer.open('/nonexistent', 'another secret of the tests', systemRandom);
  assert.equal(other.open(text, 'a'), undefined);
  assert.equal(sealer.openValue('summary', text, 'a'), undefined);
  assert.equal(sealer.open(sealer.sealValue('summary', ['m', 'v'], 'a'), 'a'), undefined);
});

test('a changed or shortened seal opens nothing and throws nothing', () => {
  const text = sealer.seal({ maker: 'm', value: 'some value' }, 'a');
  const bytes = Buffer.from(text.slice(4), 'base64url');
  for (let index = 0; index < bytes.length; index++) {
    const changed = Buffer.from(bytes);
    changed[index]! ^= 1;
    assert.equal(sealer.open(`gw1.${changed.toString('base64url')}`, 'a'), undefined);
    assert.equal(sealer.open(`gw1.${bytes.subarray(0, index).toString('base64url')}`, 'a'), undefined);
  }
  for (const other of ['', 'gw1.', 'gw1', 'EqQBCkYIBRgC', 'gw1.????', text.slice(4)])
    assert.equal(sealer.open(other, 'a'), undefined);
});

test('any JSON value can be sealed under a purpose', () => {
  const summary = { text: 'what was said', items: [1, null, { deep: true }] };
  assert.deepEqual(sealer.openValue('summary', sealer.sealValue('summary', summary, 'a'), 'a'), summary);
});

test('a value that is too large is neither sealed nor opened', () => {
  assert.throws(() => sealer.sealValue('summary', 'x'.repeat(13 * 2 ** 20), 'a'), RangeError);
  assert.equal(sealer.openValue('summary', `gw1.${'A'.repeat(16 * 2 ** 20)}`, 'a'), undefined);
});

test('a secret that is too short is refused', async () => {
  await assert.rejects(Sealer.open('/nonexistent', 'short', systemRandom), /at least 16 characters/);
});

test('without a configured secret one is made, readable by the owner alone, and found again', () =>
  withDirectory(async (directory) => {
    const first = await Sealer.open(join(directory, 'new'), undefined, systemRandom);
    const text = first.seal({ maker: 'm', value: 'v' }, 'a');
    const path = join(directory, 'new', 'seal.key');
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const second = await Sealer.open(join(directory, 'new'), undefined, systemRandom);
    assert.deepEqual(second.open(text, 'a'), { maker: 'm', value: 'v' });
    assert.deepEqual(await readdir(join(directory, 'new')), ['seal.key']);
  }));

test('openers that start at once, also in other processes, share one secret', () =>
  withDirectory(async (directory) => {
    const program = `
      const { Sealer } = await import(${JSON.stringify(import.meta.resolve('../../../plugins/protocol-convert/translate/seal.ts'))});
      const { systemRandom } = await import(${JSON.stringify(import.meta.resolve('../../../core/gateway/system.ts'))});
      const sealers = await Promise.all(Array.from({ length: 10 }, () => Sealer.open(${JSON.stringify(directory)}, undefined, systemRandom)));
      console.log(JSON.stringify(sealers.map((sealer) => sealer.seal({ maker: 'm', value: 'v' }, 'a'))));
    `;
    const start = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    const outputs = await Promise.all([start(), start(), start()]);
    const late = await Sealer.open(directory, undefined, systemRandom);
    const texts = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as string[]);
    assert.equal(texts.length, 30);
    for (const text of texts) assert.deepEqual(late.open(text, 'a'), { maker: 'm', value: 'v' });
    assert.deepEqual(await readdir(directory), ['seal.key']);
  }));

test('a file that holds no secret stops the gateway instead of being replaced', () =>
  withDirectory(async (directory) => {
    await writeFile(join(directory, 'seal.key'), 'half a sec');
    await assert.rejects(Sealer.open(directory, undefined, systemRandom), /does not hold a secret/);
    assert.equal(await readFile(join(directory, 'seal.key'), 'utf8'), 'half a sec');
  }));
