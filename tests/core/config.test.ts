/** Gateway files: include, environment, strictness, and all problems with file and line. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { boot } from '../../core/gateway/boot.ts';
import { ConfigError, readGatewayFile } from '../../core/gateway/config.ts';
import { loadYaml } from '../../core/gateway/yaml.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

function write(files: Record<string, string>): string {
  const directory = temporaryDirectory('config-');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

test('mappings of an included file are merged; its scalars and lists are replaced', () => {
  const directory = write({
    'shared.yaml': 'a: { x: 1, y: [1, 2] }\nb: under\n',
    'main.yaml': 'include: shared.yaml\na: { y: [3] }\nc: own\n',
  });
  assert.deepEqual(loadYaml(join(directory, 'main.yaml'), {}).values, { a: { x: 1, y: [3] }, b: 'under', c: 'own' });
});

test('a file that is included several times is read the same each time: changes to its values stay apart', () => {
  const directory = write({
    'shared.yaml': 'x: &x { list: [1, { y: 2 }] }\nz: *x\n',
    'one.yaml': 'include: shared.yaml\n',
    'two.yaml': '# further down\ninclude: shared.yaml\nx: { more: true }\n',
  });
  const shared = { list: [1, { y: 2 }] };
  const one = loadYaml(join(directory, 'one.yaml'), {});
  assert.deepEqual(one.values, { x: shared, z: shared });
  const { list } = one.values['x'] as { list: { y: number }[] };
  list[1]!.y = 3;
  list.push({ y: 4 });
  const two = loadYaml(join(directory, 'two.yaml'), {});
  assert.deepEqual(two.values, { x: { ...shared, more: true }, z: shared });
  assert.match(two.where(['x', 'more']), /two\.yaml:3$/);
  assert.match(two.where(['z']), /shared\.yaml:2$/);
});

test('variables are filled in, defaults replace unset and empty ones, and text stays text', () => {
  const directory = write({
    'main.yaml': 'a: ${A}\nb: ${B:-fallback}\nc: "x${A}y${EMPTY:-}"\nd: ${NUMBER}\ne: ${FLAG}\n',
  });
  const { values, problems } = loadYaml(join(directory, 'main.yaml'), {
    A: 'one',
    EMPTY: '',
    NUMBER: '8080',
    FLAG: 'true',
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(values, { a: 'one', b: 'fallback', c: 'xoney', d: '8080', e: true });
});

test('the value of a variable cannot change the structure of the file', () => {
  const directory = write({ 'main.yaml': 'a: ${A}\nb: { c: "${A}", d: ["${A}"] }\nplugins: [one]\n' });
  for (const crafted of [
    'x\nplugins: [passthrough]\n',
    '"}\nplugins: []\n#',
    "' }\nplugins: []",
    '&a [*a]',
    '*a',
    '!!binary AAAA',
    '${B}',
    '{ plugins: [] }',
    '- plugins',
    '<<: { plugins: [] }',
    '__proto__: { plugins: [] }',
    '\u2028plugins: []\u0085plugins: []',
    '...\n---\nplugins: []',
  ]) {
    const { values, problems } = loadYaml(join(directory, 'main.yaml'), { A: crafted, B: 'secret' });
    assert.deepEqual(problems, []);
    assert.deepEqual(values, { a: crafted, b: { c: crafted, d: [crafted] }, plugins: ['one'] }, crafted);
  }
});

for (const [what, text] of [
  ['a file', '__proto__: { plugins: [passthrough], listen: 1 }\ngateway: test\n'],
  ['a section', 'gateway: test\nauth: { "__proto__": { public: [chat] } }\n'],
  ['a merged section', 'base: &b { __proto__: { public: [chat] } }\nauth: { <<: *b }\n'],
  ['an escaped key', 'auth: { "\\x5f_proto__": { public: [chat] } }\n'],
] as const) {
  test(`${what} with the key "__proto__" is refused, and nothing of it is applied`, () => {
    const directory = write({ 'under.yaml': text, 'main.yaml': 'include: under.yaml\nauth: { carriers: [] }\n' });
    for (const file of ['under.yaml', 'main.yaml']) {
      const { values, problems } = loadYaml(join(directory, file), {});
      assert.match(problems.map(({ where, message }) => `${where} ${message}`).join(), /under\.yaml:\d .*"__proto__"/);
      const auth = (values['auth'] ?? {}) as Record<string, unknown>;
      if (file === 'main.yaml') assert.deepEqual([values['plugins'], auth['public']], [undefined, undefined]);
    }
    assert.equal(({} as Record<string, unknown>)['plugins'], undefined);
  });
}

test('an overridden anchor keeps the other members of its mapping', () => {
  const directory = write({ 'main.yaml': 'base: &b { x: 1, y: 2 }\nother: { <<: *b, y: 3 }\nsame: *b\n' });
  const { values } = loadYaml(join(directory, 'main.yaml'), {});
  assert.deepEqual(values['other'], { x: 1, y: 3 });
  assert.deepEqual(values['same'], { x: 1, y: 2 });
});

test('a file that includes itself is reported, and does not hang', () => {
  const directory = write({ 'a.yaml': 'include: b.yaml\n', 'b.yaml': 'include: a.yaml\n' });
  assert.match(loadYaml(join(directory, 'a.yaml'), {}).problems[0]!.message, /included by itself/);
});

test('every missing variable and every bad setting is reported, with file and line', () => {
  const directory = write({
    'shared.yaml': 'server:\n  body_limit: much\n',
    'main.yaml': 'include: shared.yaml\ngateway: main\nplugins: [passthrough]\nlog: ${NOT_SET}\nlisten: 99999\n',
  });
  assert.throws(
    () => readGatewayFile(join(directory, 'main.yaml'), {}),
    (error) => {
      assert(error instanceof ConfigError);
      const reported = error.problems.map(({ where, message }) => `${where.split('/').at(-1)} ${message}`);
      assert(reported.includes('main.yaml:4 the environment variable NOT_SET is not set'), reported.join('\n'));
      assert(reported.some((line) => line.startsWith('shared.yaml:2 server.body_limit: must be a size')));
      assert(reported.some((line) => line.startsWith('main.yaml:5 listen: must be a port')));
      return true;
    },
  );
});

test('an unknown setting of a plugin and an unknown section are refused by name', async () => {
  const directory = write({
    'main.yaml':
      'gateway: main\nplugins: [passthrough]\npassthrough:\n  upstream: http://127.0.0.1:1\n  retries: 3\nbiling: {}\n',
  });
  await assert.rejects(boot(join(directory, 'main.yaml'), { mode: 'check' }), (error) => {
    assert(error instanceof ConfigError);
    assert.match(error.message, /main\.yaml:5: passthrough\.retries: there is no such setting/);
    assert.match(error.message, /main\.yaml:6: "biling" is neither a setting of a gateway nor the section of a plugin/);
    return true;
  });
});

test('a value with several forms is refused with the problem of the intended form', async () => {
  const prices = [
    '{ input: 1e-9, output: 1 }',
    '{ input: 1, output: 1, service: { fast: 0 } }',
    '{ input: 1, output: 1, image: { 1k: much } }',
    '[{ input: 1, output: much }]',
    'frei',
  ];
  const models = prices.map((price, at) => `  m${at}: { owned_by: x, targets: [y], price: ${price} }\n`).join('');
  const directory = write({
    'main.yaml': `gateway: main\nplugins: [providers, models]\nproviders: {}\nmodels:\n${models}`,
  });
  await assert.rejects(boot(join(directory, 'main.yaml'), { mode: 'check' }), (error) => {
    assert(error instanceof ConfigError);
    assert.deepEqual(
      error.problems.map(({ message }) => message),
      [
        'models.m0.price.input: "1e-9" is not an amount of USD with at most nine decimals',
        'models.m1.price.service.fast: "0" is not a positive ratio with at most six decimals',
        'models.m2.price.image.1k: "much" is not an amount of USD with at most nine decimals',
        'models.m3.price.0.output: "much" is not an amount of USD with at most nine decimals',
        'models.m4.price: must be "free" or a mapping (name: value) or a list such as [one, two]',
      ],
    );
    return true;
  });
});

test('a plugin that cannot be found is reported with the line that lists it', async () => {
  const directory = write({ 'main.yaml': 'gateway: main\nplugins:\n  - no-such-plugin\n' });
  await assert.rejects(
    boot(join(directory, 'main.yaml'), { mode: 'check' }),
    /main\.yaml:3: the plugin "no-such-plugin" cannot be found/,
  );
});

test('a wrong order of plugins in a real file is one sentence that names the fix', async () => {
  const directory = write({ 'main.yaml': 'gateway: main\nplugins: [auth, storage]\n' });
  await assert.rejects(
    boot(join(directory, 'main.yaml'), { mode: 'check' }),
    /"auth" needs the service "database", but "storage", which provides it, stands below: move "storage" above "auth"\./,
  );
});

test('DATA_DIR of the environment overrides the file', () => {
  const directory = write({ 'main.yaml': 'gateway: main\nplugins: [passthrough]\ndata: ./elsewhere\n' });
  assert.equal(readGatewayFile(join(directory, 'main.yaml'), { DATA_DIR: '/somewhere' }).directory, '/somewhere');
});
