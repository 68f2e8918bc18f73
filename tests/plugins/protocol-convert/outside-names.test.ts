/** Members named like those of every object (`__proto__`, `constructor`) are members like any other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closedSchema } from '../../../plugins/protocol-convert/encoding/schema-closed.ts';
import { rename, toSnake } from '../../../plugins/protocol-convert/protocols/gemini/names.ts';

test('renaming keeps a member __proto__ as it is, and gives no object another prototype', () => {
  const value = JSON.parse('{"usageMetadata":{"__proto__":{"totalTokenCount":1},"constructor":2}}') as object;
  const renamed = rename(value, toSnake);
  assert.equal(JSON.stringify(renamed), '{"usage_metadata":{"__proto__":{"total_token_count":1},"constructor":2}}');
  const { usage_metadata: inner } = renamed as { usage_metadata: { total_token_count?: number } };
  assert.equal(inner.total_token_count, undefined);
});

test('an unknown keyword __proto__ of a schema is described like any other', () => {
  const schema = closedSchema(JSON.parse('{"type":"string","__proto__":{"x":1},"minimum":2}'));
  assert.match(String(schema['description']), /__proto__/);
});
