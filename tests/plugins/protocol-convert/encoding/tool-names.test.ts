/** Tool names: legal at the upstream, never shared by two tools, and found again on the way back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NameLimits, ToolNamer } from '../../../../plugins/common/encoding/tool-names.ts';
import { fc } from '../../../helpers/properties.ts';

const plain: NameLimits = { allowed: /[a-zA-Z0-9_-]/, maxLength: 64 };
const dotted: NameLimits = { allowed: /[a-zA-Z0-9_.:-]/, first: /[a-zA-Z_]/, maxLength: 64 };
const tool = (name: string, namespace?: string) =>
  ({ kind: 'function', name, ...(namespace === undefined ? {} : { namespace }) }) as const;

test('a legal name stays as it is', () => {
  const namer = new ToolNamer(plain);
  assert.equal(namer.declare(tool('read_file')), 'read_file');
  assert.equal(namer.nameFor('read_file'), 'read_file');
  assert.deepEqual(namer.names.get('read_file'), { name: 'read_file' });
});

test('a first character that is not legal is kept behind one that is', () => {
  const name = new ToolNamer(dotted).declare(tool('3d.render'));
  assert.match(name, /^_3d\.render_[0-9A-Za-z]{8}$/);
});

test('pitfall 053: names that become the same are distinguished by a hash, and lead back to their own', () => {
  const namer = new ToolNamer(plain);
  const long = 'x'.repeat(70);
  const given = [`${long}1`, `${long}2`, 'a.b', 'a:b', 'a_b'].map((name) => namer.declare(tool(name)));
  assert.equal(new Set(given).size, 5);
  assert.equal(given[4], 'a_b');
  assert.deepEqual(
    given.map((name) => namer.names.get(name)?.name),
    [`${long}1`, `${long}2`, 'a.b', 'a:b', 'a_b'],
  );
});

test('pitfall 053: the same name is mended alike in every request', () => {
  const [one, other] = [new ToolNamer(plain), new ToolNamer(plain)];
  other.declare(tool('something'));
  assert.equal(one.declare(tool('a.b')), other.declare(tool('a.b')));
});

test('pitfall 054: a namespace is flattened and restored in the answer', () => {
  const namer = new ToolNamer(plain);
  assert.equal(namer.declare(tool('list', 'mail')), 'mail__list');
  assert.deepEqual(namer.names.get('mail__list'), { name: 'list', namespace: 'mail' });
  assert.equal(namer.nameFor('list', 'mail'), 'mail__list');
});

test('a name without its namespace means the only declared tool that has it', () => {
  const namer = new ToolNamer(plain);
  namer.declare(tool('list', 'mail'));
  assert.equal(namer.nameFor('list'), 'mail__list');
  namer.declare(tool('list', 'files'));
  assert.equal(namer.nameFor('list'), 'list');
  assert.equal(namer.nameFor('list', 'files'), 'files__list');
});

test('a tool that is called like a flattened one gets another name', () => {
  const namer = new ToolNamer(plain);
  const given = [namer.declare(tool('b', 'a')), namer.declare(tool('a__b'))];
  assert.equal(given[0], 'a__b');
  assert.match(given[1]!, /^a__b_[0-9A-Za-z]{8}$/);
});

test('a tool of the empty namespace keeps its bare name, and is another one than that without a namespace', () => {
  for (const namespaces of [[undefined, ''] as const, ['', undefined] as const]) {
    const namer = new ToolNamer(plain);
    const given = namespaces.map((namespace) => namer.declare(tool('find', namespace)));
    assert.equal(given[0], 'find');
    assert.match(given[1]!, /^find_[0-9A-Za-z]{8}$/);
    assert.deepEqual(
      namespaces.map((namespace) => namer.nameFor('find', namespace)),
      given,
    );
    assert.deepEqual(
      given.map((name) => namer.names.get(name)),
      namespaces.map((namespace) => (namespace === '' ? { name: 'find', namespace } : { name: 'find' })),
    );
  }
});

test('pitfall 074: a tool that is declared twice is known as such', () => {
  const namer = new ToolNamer(plain);
  assert.equal(namer.isDeclared(tool('a')), false);
  namer.nameFor('a');
  assert.equal(namer.isDeclared(tool('a')), false);
  const first = namer.declare(tool('a'));
  assert.equal(namer.isDeclared(tool('a')), true);
  assert.equal(namer.declare(tool('a')), first);
  assert.equal(namer.names.size, 1);
});

test('free-text tools are known as such, and whether they were wrapped', () => {
  const namer = new ToolNamer(plain);
  const wrapped = namer.declare({ kind: 'custom', name: 'apply patch' }, { wrapped: true });
  namer.declare({ kind: 'custom', name: 'native' });
  assert.deepEqual([...namer.wrapped], [wrapped]);
  assert.deepEqual(namer.names.get(wrapped), { name: 'apply patch', custom: true });
});

test('an undeclared name of the history is restored, too', () => {
  const namer = new ToolNamer(plain);
  const given = namer.nameFor('old.tool');
  assert.deepEqual(namer.names.get(given), { name: 'old.tool' });
});

test('names never collide, are legal and lead back, whatever the tools are called', () => {
  const name = fc.oneof(
    fc.string({ maxLength: 90, unit: 'binary' }),
    fc.string({ maxLength: 4, unit: fc.constantFrom('a', '_', '.', '1') }),
    fc.constantFrom('__proto__', 'constructor', 'a__b'),
  );
  const key = fc.tuple(name, fc.option(name, { nil: undefined }));
  fc.assert(
    fc.property(fc.uniqueArray(key, { selector: (pair) => JSON.stringify(pair) }), (tools) => {
      for (const limits of [plain, dotted, { ...plain, maxLength: 16 }]) {
        const namer = new ToolNamer(limits);
        const given = tools.map(([bare, namespace]) => namer.declare(tool(bare, namespace)));
        assert.equal(new Set(given).size, tools.length);
        for (const [index, legal] of given.entries()) {
          assert.ok(legal.length > 0 && legal.length <= limits.maxLength);
          assert.ok([...legal].every((character) => limits.allowed.test(character)));
          assert.ok((limits.first ?? limits.allowed).test(legal[0]!));
          const [bare, namespace] = tools[index]!;
          assert.deepEqual(namer.names.get(legal), { name: bare, ...(namespace === undefined ? {} : { namespace }) });
          assert.equal(namer.nameFor(bare, namespace), legal);
        }
      }
    }),
    { numRuns: 200 },
  );
});
