/** Edits of a body: what is named changes as JSON says, every other byte stays. */
import assert from 'node:assert/strict';
import {
  applyEdits,
  type Changes,
  DepthError,
  editsFor,
  type ObjectScan,
  scanObject,
} from '../../../core/json/splice.ts';
import type { Chance } from '../../simulation/chance.ts';
import type { Target } from '../target.ts';
import { body, jsonDictionary } from './body.ts';

export const splice: Target = {
  name: 'splice',
  corpus: body.corpus,
  dictionary: jsonDictionary,
  check(bytes, chance) {
    const scan = scanOrRefuse(bytes);
    if (scan === undefined) return;
    checkPlaces(scan, bytes);
    const changes = drawChanges(chance, scan);
    const before = Buffer.from(bytes);
    const after = Buffer.from(applyEdits(bytes, editsFor(scan, changes)));
    assert.deepEqual(bytes, before, 'the input was changed in place');
    const expected = expectedMembers(scan, bytes, changes);
    const found = scanObject(after);
    assert.deepEqual(membersOf(found, after), expected);
    // What stands around the object is no part of it.
    assert.deepEqual(after.subarray(found.end), bytes.subarray(scan.end));
    assert.deepEqual(after.subarray(0, found.inside), bytes.subarray(0, scan.inside));
  },
};

function scanOrRefuse(bytes: Buffer): ObjectScan | undefined {
  try {
    return scanObject(bytes);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof DepthError) return undefined;
    throw error;
  }
}

function checkPlaces({ members, inside, end }: ObjectScan, bytes: Buffer): void {
  let at = inside;
  for (const { start, valueStart, end: memberEnd } of members) {
    assert.ok(at <= start && start < valueStart && valueStart < memberEnd && memberEnd < end, 'members out of order');
    at = memberEnd;
  }
  assert.equal(bytes[inside - 1], 0x7b);
  assert.equal(bytes[end - 1], 0x7d);
}

/** Names that are there and names that are not; no name is both removed and inserted. */
function drawChanges(chance: Chance, { members }: ObjectScan): Changes {
  const names = [...new Set(members.map(({ key }) => key)), 'model', 'absent'].filter((key) => key !== '__proto__');
  const some = () => names.filter(() => chance.oneIn(3));
  const replace: Record<string, string> = Object.create(null);
  for (const name of some()) replace[name] = chance.pick(['"x"', '1', '{"a":[]}', 'null']);
  const insert: Record<string, string> = chance.oneIn(2) ? { inserted: '[1]' } : {};
  return { replace, remove: new Set(some()), insert };
}

type Named = readonly [key: string, value: string];

function membersOf({ members }: ObjectScan, bytes: Buffer): Named[] {
  return members.map(({ key, valueStart, end }) => [key, bytes.toString('latin1', valueStart, end)]);
}

function expectedMembers(scan: ObjectScan, bytes: Buffer, { replace = {}, remove, insert = {} }: Changes): Named[] {
  const kept = membersOf(scan, bytes).filter(([key]) => !remove!.has(key));
  const changed = kept.map(([key, value]): Named => [key, Object.hasOwn(replace, key) ? replace[key]! : value]);
  return [...changed, ...Object.entries(insert)];
}
