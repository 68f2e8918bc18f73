/** Which field of a request is named whose text has U+0000. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../core/contract/errors.ts';
import { withNulField } from '../../core/json/nul-field.ts';

const refused = new GatewayError('invalid_request', 'A text has U+0000.', { code: 'invalid_text' });
const fieldOf = (body: string, query = '', error = refused) =>
  withNulField(error, { query: new URLSearchParams(query), body: Buffer.from(body) }).field;

test('the first text with U+0000 is named by its path, in the body or the query', () => {
  assert.equal(fieldOf('{"name":"a\\u0000b"}'), 'name');
  assert.equal(fieldOf('{"a":[1,{"b":["x","\\u0000"]}],"c":"\\u0000"}'), 'a[1].b[1]');
  assert.equal(fieldOf('{"metadata":{"k\\u0000":"v"}}'), 'metadata');
  assert.equal(fieldOf('', 'limit=1&after=a%00'), 'after');
});

test('an error is unchanged where no field is found or it has another cause', () => {
  for (const body of ['', '{"a":"b"}', '{"a\\u0000":1}', '{"a":"\\\\u0000"}', '{"a":"\\u0000"'])
    assert.equal(fieldOf(body), undefined);
  const other = new GatewayError('invalid_request', 'Wrong.', { code: 'wrong' });
  assert.equal(fieldOf('{"a":"\\u0000"}', '', other), undefined);
  const named = new GatewayError('invalid_request', 'Wrong.', { code: 'invalid_text', field: 'id' });
  assert.equal(fieldOf('{"a":"\\u0000"}', '', named), 'id');
});
