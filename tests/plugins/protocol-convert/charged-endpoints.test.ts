/** Which endpoints cost nothing: counting tokens, in every protocol. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gemini } from '../../../plugins/protocol-convert/protocols/gemini/index.ts';
import { messages } from '../../../plugins/protocol-convert/protocols/messages/index.ts';
import { responses } from '../../../plugins/protocol-convert/protocols/responses/index.ts';

test('counting tokens is not charged; the method of generate-content decides by the path', () => {
  for (const protocol of [messages, responses])
    for (const { operation, charges } of protocol.endpoints)
      assert.equal(charges, operation === 'count-tokens' ? false : undefined, operation);
  const { charges } = gemini.endpoints[0]!;
  assert.ok(typeof charges === 'function');
  const charged = (path: string) => charges({ path } as never);
  assert.equal(charged('/v1beta/models/m:countTokens'), false);
  assert.equal(charged('/v1beta/models/m:generateContent'), true);
  assert.equal(charged('/v1beta/models/m:streamGenerateContent'), true);
});
