/** What makes two keyed requests the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContextKey } from '../../../core/contract/contract.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { readKey } from '../../../plugins/idempotency/key.ts';
import { fakeExchange } from '../../helpers/fakes.ts';

function fingerprint(body: string, headers: Record<string, string> = {}, query = ''): string {
  const request: ClientRequest = {
    method: 'POST',
    path: '/v1/images/edits',
    query: new URLSearchParams(query),
    headers: { 'idempotency-key': 'one', ...headers },
    params: {},
    remoteAddress: '127.0.0.1',
    body: Buffer.from(body),
    bodyBytes: body.length,
  };
  const facts: [ContextKey<unknown>, unknown][] = [[caller, { accountId: 'account', keyId: 'key' }]];
  return readKey(fakeExchange({ request, facts }))!.fingerprint;
}

function form(boundary: string, prompt: string): [string, Record<string, string>] {
  const body = `--${boundary}\r\ncontent-disposition: form-data; name="prompt"\r\n\r\n${prompt}\r\n--${boundary}--\r\n`;
  return [body, { 'content-type': `multipart/form-data; boundary=${boundary}` }];
}

test('a form that is sent again with another boundary is the same request', () => {
  assert.equal(fingerprint(...form('----first-0123', 'a cat')), fingerprint(...form('second.4567', 'a cat')));
  const [body, headers] = form('second.4567', 'a cat');
  const quoted = { 'content-type': headers['content-type']!.replace(/=(.*)/, '="$1"; charset=utf-8') };
  assert.equal(fingerprint(body, quoted), fingerprint(body, headers));
});

test('another content of a form is another request', () => {
  assert.notEqual(fingerprint(...form('----first-0123', 'a cat')), fingerprint(...form('----first-0123', 'a dog')));
});

test('a key in the query is left out of the digest, and all else of the query counts', () => {
  assert.equal(fingerprint('{}', {}, 'key=a&alt=sse'), fingerprint('{}', {}, 'alt=sse&key=b'));
  assert.notEqual(fingerprint('{}', {}, 'alt=sse'), fingerprint('{}', {}, ''));
});
