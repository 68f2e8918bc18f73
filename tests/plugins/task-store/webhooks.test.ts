/** Signatures of webhooks, verified by the official library and by the vector that its authors publish. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { signedHeaders, webhookSecrets } from '../../../plugins/common/kit/fetch/webhooks.ts';
import { fc } from '../../helpers/properties.ts';

const whsec = (bytes: Uint8Array) => `whsec_${Buffer.from(bytes).toString('base64')}`;
const problemOf = (secrets: unknown) => webhookSecrets().safeParse(secrets).error?.issues[0]?.message;

test('the published vector gives the published signature', () => {
  const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'];
  const at = new Date(1_614_265_330_000);
  assert.deepEqual(signedHeaders(secrets, 'msg_p5jXN8AQM9LWM0D4loKWxJek', at, '{"test": 2432232314}'), {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

test('a text signed with any number of secrets is verified with each of them, and by no other', () => {
  const standard = fc.uint8Array({ minLength: 24, maxLength: 64 }).map(whsec);
  const plain = fc.string({ minLength: 16, unit: 'binary' }).filter((text) => !/^wh(sec|sk|pk)_/.test(text));
  const secrets = fc.uniqueArray(fc.oneof(standard, plain), { minLength: 2, maxLength: 5 });
  fc.assert(
    fc.property(secrets, fc.string({ unit: 'binary' }), ([other, ...own], text) => {
      const body = JSON.stringify({ text });
      const parsed = webhookSecrets().parse(own);
      const headers = signedHeaders(parsed, 'msg_1', new Date(), body) as Record<string, string>;
      const receiver = (secret: string) =>
        secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(Buffer.from(secret), { format: 'raw' });
      for (const secret of own) assert.deepEqual(receiver(secret).verify(body, headers), { text });
      assert.throws(() => receiver(other!).verify(body, headers));
    }),
    { numRuns: 60 },
  );
});

test('an invalid secret is refused with a sentence that does not show it', () => {
  const long = whsec(new Uint8Array(65));
  for (const wrong of [
    'whsec_not base64 at all!',
    whsec(new Uint8Array(23)),
    long,
    'whsec_YWJj*WJjYWJjYWJjYWJjYWJjYWJjYWJj',
  ])
    assert.equal(problemOf(wrong), 'must be whsec_ and the base64 of 24 to 64 bytes, or another text');
  assert.equal(problemOf('short'), 'must have at least 16 characters');
  assert.match(problemOf('whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKk')!, /not a key pair/);
  assert.match(problemOf([long, long])!, /twice|base64/);
  assert.deepEqual(
    webhookSecrets().parse(['', 'as it always was']),
    ['as it always was'],
    'unset variables are left out',
  );
});
