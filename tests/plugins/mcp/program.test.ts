/** Programs as tool servers: both eras, what they know of the gateway, their ends, their bounds, and that they are refused unless allowed. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';
import { openWorld, type World } from './world.ts';

const script = fileURLToPath(new URL('./program-server.ts', import.meta.url));
const directory = temporaryDirectory();
const logOf = (name: string) => join(directory, name);
const eventsOf = (name: string) => readFileSync(logOf(name), 'utf8').trim().split('\n');
const section = (name: string, era: string) =>
  `    ${name}: { command: ["${process.execPath}", "--no-warnings", "${script}", "${logOf(name)}", ${era}], environment: { TOOL_KEY: "k1" }, within: 20s, price: { call: 0.5 } }\n`;

let world: World;
before(async () => {
  for (const name of ['plain', 'aged']) writeFileSync(logOf(name), '');
  process.env['GATEWAY_SECRET_OF_TEST'] = 'never';
  world = await openWorld({ commands: true, apis: section('plain', 'modern') + section('aged', 'legacy') });
});
after(async () => {
  delete process.env['GATEWAY_SECRET_OF_TEST'];
  await world.stop();
  await until('the end of all programs', () =>
    ['plain', 'aged'].every((name) => pids(name).every((pid) => !runs(pid))),
  );
});

const pids = (name: string) =>
  eventsOf(name)
    .filter((line) => /^\d+$/.test(line))
    .map(Number);
function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

for (const name of ['plain', 'aged'] as const) {
  test(`the program ${name} has variables of its settings and none of the gateway's secrets, and its calls are charged`, async () => {
    const { id, key } = await world.account('10');
    const connected = await world.client(key, 'modern');
    const { tools } = await connected.listTools();
    assert.ok(tools.some((tool) => tool.name === `${name}__variables`));
    const result = await connected.callTool({ name: `${name}__variables` });
    const variables = JSON.parse((result.content[0] as { text: string }).text) as Record<string, string>;
    assert.deepEqual([variables['TOOL_KEY'], variables['GATEWAY_SECRET_OF_TEST']], ['k1', undefined]);
    assert.deepEqual(
      Object.keys(variables).filter(
        (one) => !['TOOL_KEY', 'PATH', 'HOME', 'LOGNAME', 'SHELL', 'TERM', 'USER'].includes(one),
      ),
      [],
    );
    assert.equal((await connected.callTool({ name: `${name}__fails` })).isError, true);
    await world.charges(id, 1);
    assert.equal(await world.balance(id), 9_500_000_000n);
    await connected.close();
  });

  test(`the program ${name} that ends or answers too much fails the call at no cost, and runs again for a later one`, async () => {
    const { id, key } = await world.account('10');
    const connected = await world.client(key, 'modern');
    for (const tool of ['crash', 'big']) {
      await assert.rejects(connected.callTool({ name: `${name}__${tool}` }), /did not answer as it should|reached now/);
      const started = pids(name).length;
      await until('the program again', async () => {
        const result = await connected.callTool({ name: `${name}__variables` }).catch(() => undefined);
        return result !== undefined;
      });
      assert.ok(pids(name).length > started);
    }
    await world.charges(id, 2);
    assert.equal(await world.balance(id), 9_000_000_000n);
    await until('one program alone', () => pids(name).filter(runs).length === 1);
    await connected.close();
  });

  test(`a call of the program ${name} that its client cancels is cancelled there`, async () => {
    const { key } = await world.account('10');
    const connected = await world.client(key, 'modern');
    const gone = new AbortController();
    const seen = eventsOf(name).length;
    const call = connected.callTool({ name: `${name}__slow` }, { signal: gone.signal });
    await until('the call', () => eventsOf(name).slice(seen).includes('slow'));
    gone.abort();
    await assert.rejects(call);
    await until('the cancellation', () => eventsOf(name).slice(seen).includes('cancelled'));
    await connected.close();
  });
}

test('a program is no server unless the operator allows programs, and has no address beside', async () => {
  const file = join(world.gateway.directory, 'gateway.yaml');
  const text = await readFile(file, 'utf8');
  const problem = async (from: string, to: string) => {
    assert.ok(text.includes(from), from);
    await writeFile(file, text.replace(from, to));
    return (await world.gateway.gateway.reload()).problems[0]?.message;
  };
  assert.match((await problem('commands: true', 'commands: false'))!, /only where `mcp.commands` is true/);
  assert.match(
    (await problem('aged: { command', 'aged: { url: "https://tools.example.com/mcp", command'))!,
    /not both/,
  );
  assert.match((await problem('environment: { TOOL_KEY: "k1" }', 'openapi: ./x.json'))!, /neither `openapi` nor/);
  assert.match((await problem('  bundles:', '    none: { within: 1s }\n  bundles:'))!, /needs its address/);
  await writeFile(file, text);
  assert.deepEqual((await world.gateway.gateway.reload()).problems, []);
});
