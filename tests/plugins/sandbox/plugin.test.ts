/** The sandbox as a plugin: it listens while the gateway serves, and others find it by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localUpstreams } from '../../../plugins/common/domain/upstreams.ts';
import sandbox from '../../../plugins/sandbox/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';

test('the sandbox is found by its name from start to stop', async () => {
  const host = fakeHost();
  const part = await setUp(sandbox, host, { key: 'inside', latency: { chunk: '1ms' } });
  const upstreams = host.get(localUpstreams);
  assert.equal(upstreams.origin('sandbox'), undefined);
  await part.lifecycle!.start!();
  const origin = upstreams.origin('sandbox')!;
  assert.match(origin, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.equal(upstreams.origin('another'), undefined);
  assert.equal((await fetch(`${origin}/bill`)).status, 200);
  const refused = await fetch(`${origin}/v1/messages`, { method: 'POST', body: '{}' });
  assert.equal(refused.status, 401);
  await part.lifecycle!.stop!();
  assert.equal(upstreams.origin('sandbox'), undefined);
  await assert.rejects(fetch(`${origin}/bill`));
});

test("the sandbox's configuration is strict", async () => {
  await assert.rejects(async () => setUp(sandbox, fakeHost(), { listen: 'nowhere' }));
  await assert.rejects(async () => setUp(sandbox, fakeHost(), { port: 1 }));
});
