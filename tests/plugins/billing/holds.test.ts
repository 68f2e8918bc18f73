/** The list of open holds: oldest first, whatever leaves it, and nothing that left stays reachable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Hold, newHold } from '../../../plugins/billing/reservations/hold.ts';
import { OpenHolds } from '../../../plugins/billing/reservations/open-holds.ts';
import { money, one, oneTool } from '../../../plugins/common/domain/money.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { fc } from '../../helpers/properties.ts';

function holdAt(sequence: number): Hold {
  const account = { id: `${sequence}`, accountId: 'alice', keyId: 'k' };
  const sizes = { inputTokens: 0, outputTokens: 0, allowance: oneTool };
  const priced = { prices: flatBook({}, 'v')[0]!, at: 0, context: {}, ratio: one, entry: undefined };
  const terms = { ...account, model: 'm', ...priced, ...sizes };
  return Object.assign(newHold(terms, money(1n), undefined, 0), { sequence });
}

function sequencesOf(open: OpenHolds): number[] {
  const sequences: number[] = [];
  open.forEach(({ sequence }) => void sequences.push(sequence));
  return sequences;
}

test('holds are removed in any order, and the rest stays in order', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 40 }), (steps) => {
      const open = new OpenHolds();
      let model: Hold[] = [];
      steps.forEach((step, index) => {
        const leaving = model[step];
        if (leaving === undefined) {
          const hold = holdAt(index + 1);
          open.add(hold);
          model.push(hold);
          return;
        }
        open.delete(leaving);
        model = model.filter((hold) => hold !== leaving);
        assert.deepEqual([leaving.older, leaving.newer], [undefined, undefined]);
      });
      const sequences = model.map(({ sequence }) => sequence);
      assert.deepEqual(sequencesOf(open), sequences);
      assert.equal(open.oldestSequence, sequences[0] ?? Number.POSITIVE_INFINITY);
    }),
  );
});
