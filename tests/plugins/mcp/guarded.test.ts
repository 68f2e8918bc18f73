/** Tool calls together with other plugins: guardrails read their arguments, and any mixture of calls costs what succeeded. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fc } from '../../helpers/properties.ts';
import { openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld({
    servers: ', price: { call: "0.000000007", tools: { zeta: 1.5, fails: 3 } }',
    plugins: 'providers, models, guardrails, prompts,',
    below: ', route, protocol-convert',
    more: `
providers: { vendor: { keys: k, speaks: { chat: "http://127.0.0.1:9/v1" } } }
models: { m: { owned_by: x, targets: [vendor], price: free } }
guardrails:
  checks: { secret: { type: words, list: [tulip] } }
  policies: { base: { checks: [secret], uncovered: allow } }
  apply: [{ policy: base }]
`,
  });
});
after(() => world.stop());

test('a guardrail refuses a call by its arguments, before it reaches the server and before it costs anything', async () => {
  const { id, key } = await world.account('10');
  const connected = await world.client(key, 'modern');
  const calls = world.servers.modern.seen.length;
  await assert.rejects(
    connected.callTool({ name: 'new__echo', arguments: { text: 'a tulip' } }),
    /secret|policy|refus|rule/i,
  );
  assert.equal(world.servers.modern.seen.slice(calls).filter(({ method }) => method === 'tools/call').length, 0);
  assert.equal(await world.balance(id), 10_000_000_000n);
  await connected.callTool({ name: 'new__echo', arguments: { text: 'a rose' } });
  assert.equal((await world.charges(id, 1)).length, 1);
});

test('any mixture of calls at once costs the sum of the prices of those that succeeded', async () => {
  const prices: Readonly<Record<string, bigint>> = { echo: 7n, zeta: 1_500_000_000n, fails: 0n, throws: 0n, none: 0n };
  const call = fc.record({
    server: fc.constantFrom('new', 'old'),
    name: fc.constantFrom(...Object.keys(prices)),
    era: fc.constantFrom('modern' as const, 'legacy' as const),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(call, { maxLength: 12 }), async (calls) => {
      const { id, key } = await world.account('100');
      const clients = { modern: await world.client(key, 'modern'), legacy: await world.client(key, 'legacy') };
      await Promise.all(
        calls.map(({ server, name, era }) => clients[era].callTool({ name: `${server}__${name}` }).catch(() => {})),
      );
      const paid = calls.filter(({ name }) => prices[name]! > 0n);
      await world.charges(id, paid.length);
      const sum = paid.reduce((total, { name }) => total + prices[name]!, 0n);
      assert.equal(await world.balance(id), 100_000_000_000n - sum);
      await Promise.all([clients.modern.close(), clients.legacy.close()]);
    }),
    { numRuns: 20 },
  );
});
