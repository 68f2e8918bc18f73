/** Plugins from outside: each mistake of their authors is one sentence with plugin, file and cause. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkGateway, startGateway } from '../../plugins/common/author/testing.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const folder = temporaryDirectory('outside-');

/** A plugin in a folder of its own; `members` are those of its definition. */
function plugin(name: string, members: string, before = ''): string {
  mkdirSync(join(folder, name));
  const text = `import { definePlugin, defineContextKey, z } from 'model-gateway';
import { call, caller } from 'model-gateway/domain';
${before}
export default definePlugin({ name: '${name}', ${members} });
`;
  writeFileSync(join(folder, name, 'index.ts'), text);
  return `./${name}`;
}
const config = 'config: z.strictObject({})';

async function problemOf(name: string): Promise<string> {
  const [problem, ...others] = await checkGateway({ plugins: [name] }, { from: folder });
  assert.deepEqual(others, []);
  return problem!.replaceAll(folder, '');
}

test('a throw in setup names the plugin, its file and the cause', async () => {
  const name = plugin('throwing', `${config}, setup() { return undefined.length; }`);
  const cause = "TypeError: Cannot read properties of undefined (reading 'length'), in line 4";
  assert.equal(await problemOf(name), `the plugin "throwing" (/throwing/index.ts) failed in its setup: ${cause}`);
});

test('a broken import, a missing plugin and a missing schema are reported with the plugin too', async () => {
  const importing = plugin('importing', `${config}, setup: () => ({})`, "import 'no-such-package';");
  assert.match(
    await problemOf(importing),
    /^the plugin ".*importing" \(\/importing\/index\.ts\) cannot be loaded: .*no-such-package/,
  );
  writeFileSync(join(folder, 'nothing.ts'), 'export const plugin = 1;');
  assert.match(await problemOf('./nothing.ts'), /\(\/nothing\.ts\) exports no plugin: `export default definePlugin/);
  assert.match(await problemOf(plugin('schemaless', 'setup: () => ({})')), /schemaless\/index\.ts\) has no schema/);
});

test('check finds an undeclared read that the source shows', async () => {
  const name = plugin(
    'reading',
    `${config}, requires: [call], setup: () => ({
  async handle(exchange, next) {
    exchange.get(call);
    return exchange.find(caller) === undefined ? next() : next();
  },
})`,
  );
  assert.equal(
    await problemOf(name),
    '"reading" reads the context value "caller" (/reading/index.ts:7), which it does not declare: name it under "requires" or "optional" in its plugin.',
  );
});

test('check finds an undeclared service, except one read as optional', async () => {
  const name = plugin(
    'getting',
    `${config}, setup: (host) => ({
  async handle(exchange, next) {
    host.find(accounts);
    return host.get(ledger) === undefined ? next() : next();
  },
})`,
    "import { accounts, ledger } from 'model-gateway/domain';",
  );
  assert.equal(
    await problemOf(name),
    '"getting" needs the service "ledger" (/getting/index.ts:7), which it does not declare: name it under "services.requires" in its plugin.',
  );
});

test('an undeclared read that the source does not show throws in a test', async () => {
  const name = plugin(
    'hidden',
    `${config}, setup: (host) => ({
  endpoints: [{ method: 'GET', path: '/x', operation: 'x', body: 'none', keyless: true, handle(exchange) {
    for (const key of Object.values(keys)) exchange.find(key);
    return { status: 200, headers: {}, body: '' };
  } }],
})`,
    'const keys = { caller };',
  );
  await using gateway = await startGateway({ plugins: [name] }, { from: folder });
  const answer = await fetch(`${gateway.origin}/x`);
  assert.equal(answer.status, 500);
  const { error } = await gateway.logged('the exchange failed inside the gateway');
  assert.match(JSON.stringify(error), /"hidden\\" reads the context value \\"caller\\"/);
});

test('declared values are readable, also in functions that the gateway calls later', async () => {
  const name = plugin(
    'declaring',
    `${config}, optional: [caller], setup: (host) => ({
  endpoints: [{ method: 'GET', path: '/y', operation: 'y', body: 'none', keyless: true, async handle(exchange) {
    exchange.defer(() => host.log.info({ found: typeof exchange.find(caller) }, 'deferred'));
    return { status: 200, headers: {}, body: typeof exchange.find(caller) };
  } }],
})`,
  );
  await using gateway = await startGateway({ plugins: [name] }, { from: folder });
  assert.equal(await (await fetch(`${gateway.origin}/y`)).text(), 'undefined');
  assert.equal((await gateway.logged('deferred'))['found'], 'undefined');
});
