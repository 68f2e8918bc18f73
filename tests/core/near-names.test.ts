/** "Did you mean": which names are near. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, nearName } from '../../core/tools/near-names.ts';

const known = ['chat', 'messages', 'responses', 'openai-images', 'rate-limit', 'warn', 'rpm', 'constructor'];

test('a name with few wrong, missing, doubled or swapped letters, or in another case, is near', () => {
  const pairs = Object.entries({
    chats: 'chat',
    hcat: 'chat',
    Chat: 'chat',
    mesages: 'messages',
    ratelimit: 'rate-limit',
    rate_limits: 'rate-limit',
    warning: 'warn',
    rmp: 'rpm',
  });
  for (const [written, meant] of pairs) assert.equal(nearName(written, known), meant, written);
});

test('a dissimilar name, and the name itself, are not near', () => {
  for (const written of ['openai', 'toString', '', 'x', 'embeddings', 'chat', 'm'.repeat(10_000)])
    assert.equal(nearName(written, known), undefined, written);
  assert.equal(didYouMean('openai', known), '');
  assert.equal(didYouMean('chats', known), '; did you mean "chat"?');
});

test('the nearest of several names is suggested', () => {
  assert.equal(nearName('gpt-5.5-mni', ['gpt-5.5', 'gpt-5.5-mini', 'gpt-5.4-mini']), 'gpt-5.5-mini');
});
