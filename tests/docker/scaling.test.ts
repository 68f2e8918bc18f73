/** What docker/SCALING.md says that rates of calls need is what its one table of measured figures makes of them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const page = readFileSync(new URL('../../docker/SCALING.md', import.meta.url), 'utf8');

/** The rows of the table behind a heading, by their first cell. */
function tableBehind(heading: string): Map<string, string[]> {
  const from = page.indexOf(`\n${heading}\n`);
  assert.ok(from >= 0, heading);
  const lines = page.slice(from + heading.length + 2).split('\n');
  const first = lines.findIndex((line) => line.startsWith('|'));
  const rows = lines.slice(first);
  const end = rows.findIndex((line) => !line.startsWith('|'));
  return new Map(
    rows.slice(0, end).map((line) => {
      const [name, ...cells] = line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim());
      return [name!, cells];
    }),
  );
}

const number = (text: string) => Number(text.replaceAll(',', '').replace(/ .*/, ''));

test('cores, log and disk of 1,000, 10,000 and 100,000 calls a second follow from the measured figures', () => {
  const measured = tableBehind('## What a call costs');
  const of = (name: string) => {
    const cells = measured.get(name);
    assert.ok(cells !== undefined, name);
    return number(cells[0]!);
  };
  const needs = tableBehind('## What so many calls need');
  const rates = needs.get('calls a second')!.map(number);
  assert.deepEqual(rates, [1_000, 10_000, 100_000]);
  const usedShare = of('share of a core that is planned with');
  const monthSeconds = 30 * 86_400;
  const cores = (name: string) => (rate: number) => Math.ceil((rate * of(name)) / 1e6 / usedShare);
  const computed: Record<string, (rate: number) => number> = {
    'cores of gateways': cores('gateway, µs of a core'),
    'cores of PostgreSQL': cores('PostgreSQL, µs of a core'),
    'cores of Redis': cores('Redis, µs of a core'),
    'write-ahead log, MB a second': (rate) => Math.ceil((rate * of('write-ahead log, bytes')) / 1e6),
    'rows and indexes, TB a month': (rate) =>
      Math.ceil((rate * of('rows and indexes, bytes') * monthSeconds) / 1e11) / 10,
  };
  for (const [name, need] of Object.entries(computed))
    assert.deepEqual(needs.get(name)?.map(number), rates.map(need), name);
  for (const name of ['the next wall', 'the way past it'])
    assert.equal(needs.get(name)?.filter(Boolean).length, rates.length);
});
