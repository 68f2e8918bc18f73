/** Extension points: what is added reaches its owner wherever both stand, and each mistake is one sentence. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { defineExtensionPoint, type Plugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { boot } from '../../core/gateway/boot.ts';
import { ConfigError } from '../../core/gateway/config.ts';
import { Extensions } from '../../core/gateway/extensions.ts';
import { createLog } from '../../core/gateway/log.ts';
import { checkServices } from '../../core/gateway/wiring.ts';
import { startGateway } from '../helpers/gateway.ts';

interface Greeting {
  readonly name: string;
  readonly text: string;
}
const greetings = defineExtensionPoint<Greeting>('greetings');

function plugin(name: string, more: Partial<Plugin> = {}): Plugin {
  return { name, config: z.strictObject({}), setup: () => ({}), ...more } as Plugin;
}

test('the owner of an extension point may stand above or below the plugins that extend it', () => {
  const [owner, adder] = [plugin('owner', { extensionPoints: [greetings] }), plugin('adder', { extends: [greetings] })];
  assert.deepEqual(
    checkServices([owner, adder], () => []),
    [],
  );
  assert.deepEqual(
    checkServices([adder, owner], () => []),
    [],
  );
});

test('a plugin that may extend a point works without its owner, and reaches it where it is in the list', () => {
  const adder = plugin('adder', { mayExtend: [greetings] });
  const owner = plugin('owner', { extensionPoints: [greetings] });
  assert.deepEqual(
    checkServices([adder], () => []),
    [],
  );
  const extensions = new Extensions();
  extensions.add(adder, greetings, { name: 'hello', text: 'Hello' } as Greeting);
  assert.deepEqual(extensions.complete(), []);
  assert.deepEqual(
    extensions.of(owner, greetings).map(({ text }) => text),
    ['Hello'],
  );
});

test('a point without an owner is one sentence that names all that extend it, and the plugin to add', () => {
  const list = [plugin('one', { extends: [greetings] }), plugin('two', { extends: [greetings] })];
  assert.deepEqual(
    checkServices(list.slice(0, 1), () => []),
    [
      '"one" adds to the extension point "greetings", which no plugin of the list owns: add a plugin that does to the list.',
    ],
  );
  assert.deepEqual(
    checkServices(list, () => ['owner']),
    [
      '"one" and "two" add to the extension point "greetings", which no plugin of the list owns: add "owner" to the list.',
    ],
  );
});

test('two owners of one point are a problem', () => {
  const list = [plugin('one', { extensionPoints: [greetings] }), plugin('two', { extensionPoints: [greetings] })];
  assert.deepEqual(
    checkServices(list, () => []),
    ['"one" and "two" both own the extension point "greetings": keep one.'],
  );
});

test('two extensions with one name, of one or two plugins, are one sentence', () => {
  const extensions = new Extensions();
  const [one, two] = [plugin('one', { extends: [greetings] }), plugin('two', { extends: [greetings] })];
  for (const adder of [one, two, two]) extensions.add(adder, greetings, { name: 'hello' });
  assert.deepEqual(extensions.complete(), [
    '"one" and "two" both add "hello" to the extension point "greetings": remove one of them from the list.',
    '"one" and "two" both add "hello" to the extension point "greetings": remove one of them from the list.',
  ]);
  const own = new Extensions();
  own.add(one, greetings, { name: 'hello' });
  own.add(one, greetings, { name: 'hello' });
  assert.deepEqual(own.complete(), ['"one" adds "hello" to the extension point "greetings" twice: it may do so once.']);
});

test('an undeclared extension is reported, and is not added', () => {
  const extensions = new Extensions();
  extensions.add(plugin('one'), greetings, { name: 'hello' });
  assert.deepEqual(extensions.complete(), [
    '"one" adds "hello" to the extension point "greetings", which it does not declare: name the point under "extends" in its plugin.',
  ]);
  assert.deepEqual(extensions.of(plugin('owner', { extensionPoints: [greetings] }), greetings), []);
});

test('only the owner reads extensions, and only once complete; later ones are refused', () => {
  const extensions = new Extensions();
  const owner = plugin('owner', { extensionPoints: [greetings] });
  assert.throws(() => extensions.of(plugin('other'), greetings), /"other" reads .* which it does not own/);
  assert.throws(() => extensions.of(owner, greetings), /before every plugin is set up/);
  extensions.complete();
  assert.throws(
    () => extensions.add(plugin('one', { extends: [greetings] }), greetings, { name: 'hello' }),
    /too late/,
  );
});

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'extensions-'));
  const contract = pathToFileURL('core/contract/contract.ts');
  const schema = pathToFileURL('core/contract/schema.ts');
  await writeFile(
    join(directory, 'point.ts'),
    `import { defineExtensionPoint } from '${contract}';\nexport const greetings = defineExtensionPoint('greetings');`,
  );
  await writeFile(
    join(directory, 'owner.ts'),
    `import { definePlugin } from '${contract}';
import { z } from '${schema}';
import { greetings } from './point.ts';
export default definePlugin({
  name: 'owner',
  config: z.strictObject({ says: z.string().default('hello').describe('A greeting.') }),
  extensionPoints: [greetings],
  setup: (host, config) => ({
    get endpoints() {
      return host.extensions(greetings).map(({ name, text }) => ({
        method: 'GET', path: '/' + name, operation: name, body: 'none',
        handle: () => ({ status: 200, headers: {}, body: text }),
      }));
    },
    checks: {
      problems: () => host.extensions(greetings).some(({ name }) => name === config.says) ? [] : [{
        path: ['says'], message: 'there is no greeting "' + config.says + '"',
      }],
    },
  }),
});`,
  );
  for (const [name, text] of [
    ['hello', 'Hello.'],
    ['bye', 'Goodbye.'],
  ])
    await writeFile(
      join(directory, `${name}.ts`),
      `import { definePlugin } from '${contract}';
import { z } from '${schema}';
import { greetings } from './point.ts';
export default definePlugin({
  name: '${name}',
  config: z.strictObject({}),
  extends: [greetings],
  setup(host) {
    host.extend(greetings, { name: '${name}', text: '${text}' });
    return {};
  },
});`,
    );
});
after(() => rm(directory, { recursive: true, force: true }));

for (const order of ['./hello.ts, ./owner.ts, ./bye.ts', './owner.ts, ./bye.ts, ./hello.ts'])
  test(`extensions become endpoints of the owner: ${order}`, async () => {
    await using gateway = await startGateway(`gateway: test\nlisten: 127.0.0.1:0\nplugins: [${order}]\n`, {
      directory,
    });
    const answers = ['hello', 'bye'].map(async (path) => (await fetch(`${gateway.origin}/${path}`)).text());
    assert.deepEqual(await Promise.all(answers), ['Hello.', 'Goodbye.']);
  });

test('check reports a missing owner with file and line', async () => {
  const file = join(directory, 'missing.yaml');
  await writeFile(file, 'gateway: test\nlisten: 8080\nplugins:\n  - ./hello.ts\n');
  await assert.rejects(boot(file, { mode: 'check', log: createLog('silent') }), (error) => {
    assert.ok(error instanceof ConfigError);
    assert.deepEqual(
      error.problems.map(({ message }) => message),
      [
        '"hello" adds to the extension point "greetings", which no plugin of the list owns: add a plugin that does to the list.',
      ],
    );
    assert.match(error.problems[0]!.where, /missing\.yaml:3/);
    return true;
  });
});
