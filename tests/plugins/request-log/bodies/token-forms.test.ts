/** Tokens of other services in a body, by their published forms; each is put together here, so that no scanner takes it for one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secrets } from '../../../../plugins/request-log/bodies/secrets.ts';

const long = 'aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7f';
const tokens = [
  ['xoxb', '123456789012', '1234567890123', 'abcdefghijklmnopqrstuvwx'].join('-'),
  ['xoxe.xoxp', '1', long].join('-'),
  ['xapp', '1', 'A0123456789', '1234567890123', 'abcdef0123456789'].join('-'),
  ['hooks.slack.com/services', 'T00000000', 'B00000000', 'xxxxxxxxxxxxxxxxxxxxxxxx'].join('/'),
  ['ghp', long].join('_'),
  ['github', 'pat', long].join('_'),
  ['glpat', 'abcdefghij0123456789'].join('-'),
  ['npm', 'abcdefghijklmnopqrstuvwxyz0123456789'].join('_'),
  ['hf', 'abcdefghijklmnopqrstuvwxyzabcdefgh'].join('_'),
  ['SG', 'abcdefghijklmnopqrstuv', `${long}abc`].join('.'),
  ['ya29', long].join('.'),
  ['GOCSPX', 'abcdefghijklmnopqrstuvwxyz12'].join('-'),
  ['12345678', 'AAabcdefghijklmnopqrstuvwxyz0123456'].join(':'),
  ['hvs', long].join('.'),
];

test('tokens of other services are masked in any surrounding; words with the same beginning stay', () => {
  const secrets = new Secrets({ names: [], emails: false, cards: false });
  for (const token of tokens) {
    const shown = secrets.masked(`The value is ${token}, they said.`);
    assert.ok(!shown.includes(token.slice(-10)), shown);
    assert.match(shown, /^The value is .*they said\.$/);
  }
  const plain = 'The npm_config and the key-value store of ghp; xox-games, hooks.slack.com and sig=1 stay as they are.';
  assert.equal(secrets.masked(plain), plain);
});
