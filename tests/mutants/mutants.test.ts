/** The generator of mutants, on a text of its own: each operator, names that survive a move, suites, and what an earlier run is compared by. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { areaOf } from './areas.ts';
import { type Mutant, mutantsOf } from './candidates.ts';
import { draw, refound } from './draw.ts';
import { flattened, isExecuted } from './executed.ts';
import type { Plain } from './plain.ts';
import { compared, type Outcome, tableOf } from './report.ts';
import { Suites } from './suites.ts';
import { Syntax } from './syntax.ts';

const source = `import { log } from './log.ts';
interface Shape { readonly size: 3 }
export async function due(shape: Shape, list: readonly number[]): Promise<number> {
  log.warn('nothing', 1);
  if (list.length > 2 && shape.size === 3) return 0;
  await Promise.resolve();
  const total = list.filter((one) => one >= 0).reduce((sum, one) => sum + one, 0);
  const { bonus }: { bonus?: boolean; least?: number } = { bonus: true, least: 40 };
  return bonus ? Math.ceil(total / 7) : -1;
}
`;

/** A project of these files, with this repository's packages. */
function projectOf(files: Record<string, string>): string {
  const root = temporaryDirectory('mutants-');
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(root, 'node_modules'));
  const options = {
    strict: true,
    module: 'NodeNext',
    target: 'ES2024',
    allowImportingTsExtensions: true,
    noEmit: true,
  };
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...options, types: [] } }));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(root, file, '..'), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return root;
}

const logFile = 'export const log = { warn(_text: string, _count: number): void {} };\n';

test('each operator makes its mutants, none of them in types, imports or log messages', () => {
  const syntax = new Syntax(projectOf({ 'a.ts': source, 'log.ts': logFile }));
  const found = mutantsOf('a.ts', syntax.tree('a.ts'));
  const made = found.map(({ operator, from, to }) => `${operator}: ${from} → ${to}`);
  for (const expected of [
    'comparison: > → >=',
    'comparison: === → !==',
    'condition: && → ||',
    'branch: list.length > 2 && shape.size === 3 → false',
    'await: await Promise.resolve() → Promise.resolve()',
    'statement: await Promise.resolve(); → ;',
    'method: list.filter((one) => one >= 0) → list',
    'arithmetic: + → -',
    'arithmetic: / → *',
    'rounding: ceil → floor',
    'member: bonus: true,  → ',
    'constant: true → false',
    'constant: 40 → 0',
    'off by one: 7 → 8',
    'off by one: 7 → 6',
    'argument: , 0 → ',
    'arithmetic: -1 → 1',
  ])
    assert.ok(made.includes(expected), `${expected} is missing`);
  assert.ok(found.every(({ line }) => line > 4));
  assert.equal(new Set(found.map(({ id }) => id)).size, found.length);
  assert.ok(found.every(({ owner }) => owner === 'due'));
  assert.equal(syntax.accepts('a.ts', source.replace('total / 7', "'total'")), false);
  assert.equal(syntax.accepts('a.ts', source.replace('total / 7', 'total * 7')), true);
  syntax.close();
});

test('a mutant keeps its identity where its function moves to another file or is renamed', () => {
  const renamed = source.replace('function due', 'function owed');
  const syntax = new Syntax(
    projectOf({ 'a.ts': source, 'b/c.ts': `\n\n${source}`, 'd.ts': renamed, 'log.ts': logFile }),
  );
  const [before, moved, other] = ['a.ts', 'b/c.ts', 'd.ts'].map((file) => mutantsOf(file, syntax.tree(file)));
  syntax.close();
  assert.deepEqual(
    moved!.map(({ id }) => id),
    before!.map(({ id }) => id),
  );
  const ceil = before!.find(({ operator }) => operator === 'rounding')!;
  assert.equal(refound(moved!, [ceil])[0]?.line, ceil.line + 2);
  assert.equal(refound(other!, [ceil])[0]?.owner, 'owed');
  assert.deepEqual(refound([...other!, ...other!.map((one) => ({ ...one, id: `${one.id}-2` }))], [ceil]), []);
});

test('one seed draws the same mutants, one of a function, only such as TypeScript accepts, earlier ones first', () => {
  const root = projectOf({
    'plugins/billing/a.ts': source.replace('./log.ts', '../../log.ts'),
    'plugins/billing/b.ts': 'export const half = (whole: bigint): bigint => whole / 2n;\n',
    'log.ts': logFile,
  });
  const drawn = draw({ root, seed: '1', count: 40 });
  assert.deepEqual(draw({ root, seed: '1', count: 40 }), drawn);
  assert.deepEqual(drawn.map(({ file, area }) => [file, area]).toSorted(), [
    ['plugins/billing/a.ts', 'money'],
    ['plugins/billing/b.ts', 'money'],
  ]);
  const others = ['2', '3'].map((seed) => draw({ root, seed, count: 40 }).map(({ id }) => id));
  assert.ok(new Set([...drawn.map(({ id }) => id), ...others.flat()]).size > 2, 'other seeds draw others');
  const again = draw({ root, seed: '9', count: 40, earlier: drawn });
  assert.deepEqual(
    again.map(({ id }) => id),
    drawn.map(({ id }) => id),
  );
  mkdirSync(join(root, 'plugins/elsewhere'));
  renameSync(join(root, 'plugins/billing/b.ts'), join(root, 'plugins/elsewhere/b.ts'));
  const moved = draw({ root, seed: '9', count: 40, earlier: drawn }).find(({ file }) => file.endsWith('b.ts'));
  assert.deepEqual([moved?.file, moved?.area], ['plugins/elsewhere/b.ts', 'money']);
});

test('areas have the product files that they name', () => {
  assert.equal(areaOf('plugins/common/domain/money.ts')?.name, 'money');
  assert.equal(areaOf('plugins/protocol-convert/protocols/chat/usage-meter.ts')?.name, 'metering');
  assert.equal(areaOf('plugins/protocol-convert/relay/relay.ts')?.name, 'conversion');
  assert.equal(areaOf('plugins/telemetry/open.ts'), undefined);
});

test('executed blocks are reported from those within or around them that were not', () => {
  const range = (startOffset: number, endOffset: number, count: number) => ({ startOffset, endOffset, count });
  const executed = flattened([
    { functionName: '', ranges: [range(0, 100, 1)] },
    { functionName: 'a', ranges: [range(10, 50, 2), range(20, 30, 0)] },
    { functionName: 'b', ranges: [range(60, 90, 0)] },
  ]);
  assert.deepEqual(executed, [0, 20, 30, 60, 90, 100]);
  assert.deepEqual(
    [5, 20, 29, 30, 60, 95].map((at) => isExecuted(executed, at)),
    [true, false, false, true, false, true],
  );
});

test('suites of a mutant execute it and passed without it; those of its folder come first, then the quickest', () => {
  const file = 'plugins/rate-limit/decide.ts';
  const plain = (ms: number, executed: number[], passed = true): Plain => ({
    ms,
    passed,
    executed: { [file]: executed },
  });
  const suites = new Suites(
    new Map([
      ['tests/core/log.test.ts', plain(900, [0, 50])],
      ['tests/core/sse.test.ts', plain(5, [0, 50])],
      ['tests/plugins/rate-limit/decide.test.ts', plain(400, [10, 20])],
      ['tests/plugins/rate-limit/memory.test.ts', plain(1, [0, 50], false)],
      ['tests/plugins/rate-limit/headers.test.ts', plain(1, [20, 50])],
    ]),
  );
  const mutant = { file, owner: 'decide', start: 12 } as Mutant;
  assert.deepEqual(suites.of(mutant), [
    'tests/plugins/rate-limit/decide.test.ts',
    'tests/core/sse.test.ts',
    'tests/core/log.test.ts',
  ]);
  const importers = suites.of({ ...mutant, start: 60 });
  assert.ok(importers.includes('tests/plugins/rate-limit/decide.test.ts'), 'what no test executes itself');
  assert.ok(!importers.includes('tests/core/sse.test.ts'));
  const outside = suites.of({ ...mutant, owner: '', start: 60 });
  assert.ok(
    outside.includes('tests/plugins/rate-limit/headers.test.ts'),
    'outside of functions: all that use the file',
  );
});

test('a comparison names mutants that were killed before and live now, and counts missing ones', () => {
  const one = (id: string, result: Outcome['result']) =>
    ({ id, looseId: `${id}-loose`, area: 'money', result, suites: 1, ms: 30_000 }) as Outcome;
  const before = [one('a', 'killed'), one('b', 'killed'), one('c', 'alive'), one('d', 'killed'), one('e', 'alive')];
  const now = [
    one('a', 'killed'),
    { ...one('x', 'alive'), looseId: 'b-loose' },
    one('c', 'killed'),
    one('e', 'equivalent'),
  ];
  const { lost, won, gone } = compared(before, now);
  assert.deepEqual(
    [lost, won, gone].map((list) => list.map(({ id }) => id)),
    [['x'], ['c'], ['d']],
  );
  assert.match(tableOf(now), /\| money \| 4 \| 2 \| 1 \| 1 \| 2\.0 \|/);
});
