/** The cost of a hashed password, in a process of its own: those of the tests hash with less. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { scryptSync } from 'node:crypto';
import { test } from 'node:test';
import { promisify } from 'node:util';

test('a password is hashed by scrypt with N 16384 and r 16', async () => {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const script = "import { hashPassword } from 'better-auth/crypto'; console.log(await hashPassword('correct horse'));";
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], { env });
  const [salt, key] = stdout.trim().split(':');
  const expected = scryptSync('correct horse', salt!, 64, { N: 16_384, r: 16, p: 1, maxmem: 2 ** 26 });
  assert.equal(key, expected.toString('hex'));
});
