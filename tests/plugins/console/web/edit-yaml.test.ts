/** The forms over the configuration: they change one member of a file and no other byte of it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isMap, isScalar, type Node, parse, parseDocument } from 'yaml';
import {
  type FormMap,
  type FormValue,
  type Path,
  withMember,
  withName,
} from '../../../../plugins/console/web/src/pages/operator/config/forms/edit-yaml.ts';
import {
  fileFor,
  layersOf,
  namesAt,
  nothingAt,
  valueAt,
  wholeAt,
} from '../../../../plugins/console/web/src/pages/operator/config/forms/layers.ts';
import { runsOf, testHistory } from '../../../helpers/histories.ts';
import { fc } from '../../../helpers/properties.ts';

const read = (name: string) => readFileSync(new URL(`../../../../config/${name}`, import.meta.url), 'utf8');
const shipped = ['main.yaml', 'shared.yaml', 'models.yaml', 'alt.yaml', 'demo.yaml', 'sandbox.yaml'].map(read);

const sample = `# head
plans: # the plans
  default: free
  offers:
    # the free one
    free: { price: 0, grant: { amount: 1, every: month } } # as a start
    pro:
      price: 20 # a month

      limits: { rpm: 600 }

console:
  name: "Shop" # shown
`;

test('one member is written at its place, and comments, order and quotes stay', () => {
  const cases: readonly (readonly [Path, FormValue, string, string])[] = [
    [['plans', 'offers', 'pro', 'price'], '25.50', 'price: 20 #', 'price: 25.50 #'],
    [['plans', 'offers', 'free', 'grant', 'amount'], '2', 'amount: 1,', 'amount: 2,'],
    [['plans', 'offers', 'free', 'multiplier'], '0.9', ' } } #', ' }, multiplier: 0.9 } #'],
    [['plans', 'offers', 'pro', 'renew'], true, '600 }\n', '600 }\n      renew: true\n'],
    [['plans', 'offers', 'pro', 'price'], undefined, '      price: 20 # a month\n', ''],
    [['plans', 'offers', 'pro', 'limits', 'rpm'], undefined, '      limits: { rpm: 600 }\n', ''],
    [['plans', 'offers', 'free', 'price'], undefined, 'price: 0, ', ''],
    [['console', 'name'], 'A: B', '"Shop"', '"A: B"'],
    [['console', 'sign_up'], 'open', '# shown\n', '# shown\n  sign_up: open\n'],
    [['console', 'public', 'status'], false, '# shown\n', '# shown\n  public:\n    status: false\n'],
    [['plans', 'offers', 'free', 'models'], ['a', '${B}'], ' } } #', ' }, models: [a, "${B}"] } #'],
  ];
  for (const [path, value, before, after] of cases)
    assert.equal(
      withMember(sample, path, value),
      sample.replace(before, () => after),
      path.join('.'),
    );
  assert.equal(withMember('', ['console', 'name'], 'Shop'), 'console:\n  name: Shop\n');
  assert.equal(withMember('# nothing yet', ['a'], 'b'), '# nothing yet\na: b\n');
  assert.equal(withMember('a:\nb: 1\n', ['a', 'c'], '2'), 'a: { c: 2 }\nb: 1\n');
  assert.equal(withMember('a:\n  - 1\n  - 2 # two\nb: 1\n', ['a'], '3'), 'a: 3 # two\nb: 1\n');
});

test('a new entry is written below the others with all of its members, in the style of its place', () => {
  const entry: FormMap = new Map<string, NonNullable<FormValue>>([
    ['owned_by', 'acme'],
    [
      'targets',
      [
        'one',
        new Map<string, NonNullable<FormValue>>([
          ['provider', 'two'],
          ['model', '4'],
          ['cost', new Map([['input', '1.50']])],
        ]),
      ],
    ],
    ['price', new Map([['input', '2.50']])],
  ]);
  const block = `models:
  old: { price: free } # first
  new: x:
    owned_by: acme
    targets:
      - one
      - { provider: two, model: 4, cost: { input: 1.50 } }
    price:
      input: 2.50
`.replace('new: x', '"new: x"');
  assert.equal(withMember('models:\n  old: { price: free } # first\n', ['models', 'new: x'], entry), block);
  assert.equal(
    withMember('models: { old: { price: free } }\n', ['models', 'new'], new Map([['targets', ['a', 'b/c']]])),
    'models: { old: { price: free }, new: { targets: [a, b/c] } }\n',
  );
});

test('a renamed member keeps its value, place and comments', () => {
  const text = 'price:\n  input: 1\n  above: { 200k: { input: 2 } } # long\n  service:\n    flex: 0.5 # cheap\n';
  assert.equal(withName(text, ['price', 'above', '200k'], '300k'), text.replace('200k', '300k'));
  assert.equal(withName(text, ['price', 'service', 'flex'], 'a: b'), text.replace('flex', '"a: b"'));
  assert.equal(withName(text, ['price', 'input'], 'above'), undefined);
  assert.equal(withName(text, ['price', 'output'], 'call'), undefined);
  assert.equal(withName('a: &x { b: 1 }\nc: *x\n', ['c', 'b'], 'd'), undefined);
});

test('aliased values, other values than mappings, and invalid YAML are not edited', () => {
  assert.equal(withMember('a: &x { b: 1 }\nc: *x\n', ['c', 'b'], '2'), undefined);
  assert.equal(withMember('a: &x { b: 1 }\nc: *x\n', ['c'], '2'), undefined);
  assert.equal(withMember('a: [1, 2]\n', ['a', 'b'], '2'), undefined);
  assert.equal(withMember('a: {', ['a', 'b'], '2'), undefined);
  assert.equal(withMember('- a\n', ['a'], '2'), undefined);
});

/** Paths of all scalars in a file, and of members that are not there yet. */
function pathsOf(text: string): Path[] {
  const found: Path[] = [];
  const walk = (node: Node | null, path: Path) => {
    if (!isMap(node)) return;
    found.push([...path, 'added'], [...path, 'new group', 'added']);
    for (const { key, value } of node.items) {
      if (!isScalar(key)) continue;
      const inner = [...path, String(key.value)];
      if (value === null || isScalar(value)) found.push(inner);
      else walk(value as Node, inner);
    }
  };
  walk(parseDocument(text).contents, []);
  return found;
}

const values = fc.oneof(
  fc.constant(undefined),
  fc.boolean(),
  fc.integer({ min: 0, max: 1_000_000 }).map(String),
  fc.stringMatching(/^(0|[1-9][0-9]{0,6})\.[0-9]{1,9}$/),
  fc.string({ maxLength: 20 }),
  fc.constantFrom('${NAME}', '${NAME:-}', '30d', 'no', 'null', '# x', 'a: b', '~', '1e3', '{}', '- a', ' x '),
  fc.array(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 3 }),
);

test('any member of the shipped files accepts any value, and every other line stays', () => {
  // Each file as often as any other: the members of the longest, the catalogue, are all alike.
  const places = shipped.map((text) => fc.constantFrom(...pathsOf(text).map((path) => ({ text, path }))));
  fc.assert(
    fc.property(fc.oneof(...places), values, ({ text, path }, value) => {
      const changed = withMember(text, path, value);
      assert.ok(changed !== undefined, path.join('.'));
      const wanted = typeof value === 'string' && /^(0|[1-9]\d*)(\.\d+)?$/.test(value) ? Number(value) : value;
      const at = path.reduce<unknown>(
        (inner, name) => (inner as Record<string, unknown> | undefined)?.[name],
        parse(changed),
      );
      assert.deepEqual(at, wanted);
      // At most one line of the old text is another one; new lines come in beside it.
      const kept = new Set(changed.split('\n'));
      const gone = text.split('\n').filter((line) => !kept.has(line));
      assert.ok(gone.length <= (value === undefined ? 12 : 1), gone.join('\n'));
      const comments = (of: string) => of.split('\n').filter((line) => /^\s*#/.test(line));
      if (value !== undefined) assert.deepEqual(comments(changed).slice(0, 3), comments(text).slice(0, 3));
      if (value !== undefined) assert.equal(comments(changed).length, comments(text).length);
    }),
    { numRuns: runsOf(20, 450) },
  );
});

const names = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9.-]{0,12}$/),
  fc.constantFrom('200k', '1000', 'mon-fri 01:00-04:00', 'high 1024x1536', 'a: b', '# c', '~', '"q"'),
);
const amounts = fc.stringMatching(/^(0|[1-9][0-9]{0,6})(\.[0-9]{1,9})?$/);
const amountMaps = fc
  .uniqueArray(fc.tuple(names, amounts), { minLength: 1, maxLength: 4, selector: ([name]) => name })
  .map((pairs) => new Map(pairs));

test('a tier and a model added to the shipped catalogue are read as entered, and every line stays', () => {
  const text = read('models.yaml');
  const lines = text.split('\n');
  const models = Object.entries(parse(text).models as Record<string, { price?: object }>)
    .filter(([, { price }]) => price !== undefined && !Array.isArray(price) && typeof price === 'object')
    .map(([name]) => name);
  const places = fc.oneof(
    fc.constant<Path>(['models']),
    fc
      .tuple(fc.constantFrom(...models), fc.constantFrom('above', 'service', 'hours'))
      .map(([name, member]): Path => ['models', name, 'price', member]),
  );
  fc.assert(
    fc.property(places, names, amountMaps, (place, name, entered) => {
      const path = [...place, name];
      const before = layersOf([{ name: 'a.yaml', text, writable: true, includes: [] }]);
      // What an alias writes is left to people.
      fc.pre(!namesAt(before, place).includes(name) && fileFor(before, path) !== undefined);
      const changed = withMember(text, path, entered)!;
      const after = layersOf([{ name: 'a.yaml', text: changed, writable: true, includes: [] }]);
      assert.deepEqual(wholeAt(after, path), Object.fromEntries(entered));
      // At most the line that the tier is written into is another one.
      const gone = lines.filter((line) => !changed.includes(line));
      assert.ok(gone.length <= 1, gone.join('\n'));
      const other = withName(changed, path, 'z renamed')!;
      assert.deepEqual(
        wholeAt(layersOf([{ name: 'a.yaml', text: other, writable: true, includes: [] }]), [...place, 'z renamed']),
        Object.fromEntries(entered),
      );
      // What was added is taken out without a trace, as far as values go.
      assert.deepEqual(
        wholeAt(
          layersOf([{ name: 'a.yaml', text: withMember(changed, path, undefined)!, writable: true, includes: [] }]),
          ['models'],
        ),
        wholeAt(before, ['models']),
      );
    }),
    { numRuns: runsOf(3, 45) },
  );
});

test('a whole value is merged from all files, with the digits of its numbers, through aliases', () => {
  const layers = layersOf([
    {
      name: 'a.yaml',
      text: 'm: { price: { input: 1.50, above: { 200k: { input: 2 } } } }',
      writable: true,
      includes: ['b.yaml'],
    },
    {
      name: 'b.yaml',
      text: 's: &s { flex: 0.50 }\nm: { price: { input: 1, output: 4.0, service: *s }, list: [1.0] }',
      writable: true,
      includes: [],
    },
  ]);
  assert.deepEqual(wholeAt(layers, ['m', 'price']), {
    input: '1.50',
    output: '4.0',
    service: { flex: '0.50' },
    above: { '200k': { input: '2' } },
  });
  assert.deepEqual(wholeAt(layers, ['m', 'list']), ['1.0']);
  assert.equal(wholeAt(layers, ['m', 'cost']), undefined);
});

testHistory('writing existing values again gives the same bytes', () => {
  for (const text of shipped) {
    const layers = layersOf([{ name: 'a.yaml', text, writable: true, includes: [] }]);
    const values = parse(text, { merge: true });
    for (const path of pathsOf(text)
      .filter((path) => !path.includes('added'))
      .slice(0, 20)) {
      const written = valueAt(layers, path);
      if (typeof written !== 'string') continue;
      const other = withMember(text, path, `${written}0`)!;
      const back = withMember(other, path, /^(true|false)$/.test(written) ? written === 'true' : written)!;
      assert.deepEqual(parse(back, { merge: true }), values, path.join('.'));
      assert.equal(back.split('\n').length, text.split('\n').length);
    }
  }
});

test('files are merged as the gateway reads them, and a member is written in its own file', () => {
  const layers = layersOf([
    {
      name: '/etc/gateway/demo.yaml',
      text: 'plans: { offers: { free: { price: 0 } } }',
      writable: true,
      includes: ['config/main.yaml', 'box.yaml'],
    },
    {
      name: 'config/main.yaml',
      text: 'plans: { default: free, offers: { pro: { price: 20 } } }',
      writable: true,
      includes: ['config/shared.yaml'],
    },
    {
      name: 'config/shared.yaml',
      text: 'providers: { openai: { keys: "${A}" } }\nlog: info',
      writable: false,
      includes: [],
    },
    { name: 'box.yaml', text: 'log: debug\ntraits: &t { a: 1 }\nmodels: { x: *t }', writable: true, includes: [] },
  ]);
  assert.deepEqual(
    layers.map(({ name }) => name),
    ['/etc/gateway/demo.yaml', 'box.yaml', 'config/main.yaml', 'config/shared.yaml'],
  );
  assert.equal(valueAt(layers, ['log']), 'debug');
  assert.equal(valueAt(layers, ['plans', 'offers', 'pro', 'price']), '20');
  assert.deepEqual(valueAt(layers, ['plans', 'offers']), { other: true });
  assert.equal(valueAt(layers, ['constructor']), undefined);
  assert.deepEqual(namesAt(layers, ['plans', 'offers']), ['pro', 'free']);
  const above = { name: 'own.yaml', text: 'plans: { offers: { pro: null } }', writable: true };
  const taken = layersOf([{ ...above, includes: [layers[0]!.name] }, ...layers]);
  assert.deepEqual(namesAt(taken, ['plans', 'offers']), ['free']);
  assert.equal(fileFor(layers, ['plans', 'offers', 'pro', 'price'])?.name, 'config/main.yaml');
  assert.equal(fileFor(layers, ['plans', 'offers', 'new', 'price'])?.name, '/etc/gateway/demo.yaml');
  assert.equal(fileFor(layers, ['providers', 'new'])?.name, '/etc/gateway/demo.yaml');
  // It may not be written: what lies over it takes the change.
  assert.equal(fileFor(layers, ['providers', 'openai', 'keys'])?.name, 'config/main.yaml');
  assert.equal(fileFor(layers, ['models', 'x', 'a']), undefined);
  const own = layersOf(layers.map((layer) => ({ ...layer, writable: layer.name === '/etc/gateway/demo.yaml' })));
  assert.equal(fileFor(own, ['plans', 'offers', 'pro', 'price'])?.name, '/etc/gateway/demo.yaml');
  assert.equal(fileFor(layersOf(layers.map((layer) => ({ ...layer, writable: false }))), ['log']), undefined);
});

test('a secret that is taken out is empty over a file that has it, and gone where no other one does', () => {
  const layers = (text: string) =>
    layersOf([
      { name: 'own.yaml', text, writable: true, includes: ['shipped.yaml'] },
      { name: 'shipped.yaml', text: 'a: { keys: one }', writable: false, includes: [] },
    ]);
  assert.equal(nothingAt(layers('a: { keys: two }'), ['a', 'keys']), '');
  assert.equal(nothingAt(layers(''), ['a', 'keys']), '');
  assert.equal(nothingAt(layers('b: { keys: two }'), ['b', 'keys']), undefined);
  const written = withMember('', ['a', 'keys'], '')!;
  assert.equal(valueAt(layers(written), ['a', 'keys']), '');
});
