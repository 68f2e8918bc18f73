/** What auditors see of a gateway file: names of variables and files, never a secret, however it is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutSecrets } from '../../../plugins/console/api/config-secrets.ts';

const hidden = [
  'auth: { secret: hush-1 }',
  'auth: { secret: [hush-1, "hush-2"] }',
  `auth: { secret: ["\${NEW}", hush-1] }`,
  'secret: [hush-1, hush-2]',
  'secret:\n  - hush-1\n  - hush-2',
  'acme: { speaks: { chat: "https://x.example" }, keys: [hush-1, hush-2] }',
  `keys: [\${A}, hush-1]`,
  `key: "\${file:-hush-1}"`,
  `key: "\${A:-hush-1}"`,
  'ops: { type: webhook, url: "https://h.example", secret: [hush-1,\n    hush-2] }',
];
const shown = [
  `secret: "\${NEW}"`,
  `secret: ["\${NEW}", "\${OLD:-}"]`,
  `auth: { secret: ["\${NEW}", \${OLD}] }`,
  `keys: "\${file:/run/secrets/acme}"`,
  `acme: { keys: ["\${file:/run/secrets/a}", "\${vault:acme/key}"] }`,
];

test('only secrets are masked, in lists and in braces', () => {
  for (const text of hidden) assert.doesNotMatch(withoutSecrets(text), /hush/, text);
});

test('names of variables and files are shown as they are written', () => {
  for (const text of shown) assert.equal(withoutSecrets(text), text);
});
