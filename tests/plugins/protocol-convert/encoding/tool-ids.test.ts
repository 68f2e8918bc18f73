/** Ids of tool calls: legal where they go, the same for the same call, different for different ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legalCallId, madeCallId } from '../../../../plugins/common/encoding/tool-ids.ts';
import { fc } from '../../../helpers/properties.ts';

const rules = { messages: /^[a-zA-Z0-9_-]{1,64}$/, any: /^[\x21-\x7e]{1,64}$/, nine: /^[a-zA-Z0-9]{9}$/ } as const;
const forms = ['messages', 'any', 'nine'] as const;

test('legal ids stay unchanged', () => {
  assert.equal(legalCallId('toolu_01A-b', 'messages'), 'toolu_01A-b');
  assert.equal(legalCallId('functions.read:0', 'any'), 'functions.read:0');
  assert.equal(legalCallId('a1B2c3D4e', 'nine'), 'a1B2c3D4e');
});

test('pitfall 052: ids with other characters or of more than 64 become legal ones that stay apart', () => {
  const ids = ['call.1', 'call:1', 'call|1', `${'x'.repeat(65)}1`, `${'x'.repeat(65)}2`];
  const legal = ids.map((id) => legalCallId(id, 'messages'));
  assert.equal(new Set(legal).size, ids.length);
  for (const id of legal) assert.match(id, /^toolu_[0-9A-Za-z]{24}$/);
});

test('ids are legal, stable, apart, and legal ids of the result stay', () => {
  const id = fc.string({ maxLength: 80, unit: 'binary' });
  fc.assert(
    fc.property(id, id, (one, other) => {
      for (const form of forms) {
        const legal = legalCallId(one, form);
        assert.match(legal, rules[form]);
        assert.equal(legalCallId(one, form), legal);
        assert.equal(legalCallId(legal, form), legal);
        if (one !== other) assert.notEqual(legal, legalCallId(other, form));
      }
    }),
  );
});

test('pitfall 050: a call without an id gets one that follows from its place and name', () => {
  assert.equal(madeCallId(3, 0, 'read'), madeCallId(3, 0, 'read'));
  const ids = [madeCallId(3, 0, 'read'), madeCallId(3, 1, 'read'), madeCallId(31, 0, 'read'), madeCallId(3, 0, 'list')];
  assert.equal(new Set(ids).size, 4);
  for (const id of ids) assert.equal(legalCallId(id, 'messages'), id);
});
