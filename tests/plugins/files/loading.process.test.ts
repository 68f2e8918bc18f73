/** What is loaded when: the S3 client is large, and few gateways need it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

/** Whether a process that opens this store has loaded a module of the AWS client. */
function loadsClient(s3: object): boolean {
  const script = `
    const { registerHooks } = await import('node:module');
    let found = false;
    registerHooks({ resolve(name, context, next) { found ||= name.startsWith('@aws-sdk/'); return next(name, context); } });
    const { openStore } = await import('./plugins/files/index.ts');
    const { configSchema } = await import('./plugins/files/config.ts');
    (await openStore('/nonexistent', configSchema.parse({ s3: ${JSON.stringify(s3)} }), { every() {} })).close();
    console.log(found);`;
  const answer = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  return answer.trim() === 'true';
}

test('the S3 client is loaded only where a bucket is configured', () => {
  assert.equal(loadsClient({}), false);
  assert.equal(loadsClient({ bucket: 'results' }), true);
});
