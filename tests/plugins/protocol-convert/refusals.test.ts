import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskSecrets } from '../../../core/contract/secret.ts';
import { toGatewayError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { retryAfterMs } from '../../../plugins/common/kit/retry-after.ts';
import { maxScrubbedBytes, scrubBytes, scrubText } from '../../../plugins/common/kit/scrub.ts';
import { classify } from '../../../plugins/common/kit/upstream-errors.ts';
import { fc } from '../../helpers/properties.ts';
import { relay, wholeAnswer } from './harness.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const refuse = (status: number, body: unknown = {}, headers = {}) =>
  classify(status, headers, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), now);

const table: readonly [status: number, kind: string, keyAtFault: boolean, mayRun: boolean, handsBodyOn: boolean][] = [
  [302, 'upstream_failed', false, false, false],
  [400, 'invalid_request', false, false, true],
  [401, 'upstream_failed', true, false, false],
  [402, 'upstream_failed', true, false, false],
  [403, 'upstream_failed', true, false, false],
  [404, 'not_found', false, false, true],
  [405, 'upstream_failed', false, false, false],
  [409, 'conflict', false, false, true],
  [413, 'too_large', false, false, true],
  [422, 'unsupported', false, false, true],
  [429, 'rate_limited', false, false, true],
  [500, 'upstream_failed', false, true, false],
  [502, 'upstream_failed', false, true, false],
  [503, 'overloaded', false, false, false],
  [504, 'upstream_failed', false, true, false],
  [529, 'overloaded', false, false, false],
];
for (const [status, kind, keyAtFault, mayRun, handsBodyOn] of table) {
  test(`an upstream’s ${status} is ${kind}${handsBodyOn ? ' in its own words' : ' in ours'}`, () => {
    const body = '{"error": {"message":"Their words"}}';
    const refusal = refuse(status, body);
    assert.deepEqual(
      [refusal.status, refusal.error.kind, refusal.keyAtFault, refusal.mayRun, refusal.hasUsage],
      [status, kind, keyAtFault, mayRun, false],
    );
    assert.equal(refusal.answer?.body.toString(), handsBodyOn ? body : undefined);
    assert.equal(refusal.error.message === 'Their words', handsBodyOn);
    assert.equal(refusal.error.shouldRetry, mayRun ? false : undefined);
    assert.equal(toGatewayError(refusal), refusal.error);
  });
}

const texts: readonly [what: string, body: string, message: string][] = [
  ['nothing', '', 'The model refused the request.'],
  ['null', 'null', 'The model refused the request.'],
  ['a number', '7', 'The model refused the request.'],
  ['a JSON string', '"Too\\nlong"', 'Too long'],
  ['text', '  Too\u0000 long \n', 'Too long'],
  ['a broken object', '{"error": "Too long', '{"error": "Too long'],
  ['a list of entries', '[{"msg":"Too long"},{"message":"Too deep"}]', 'Too long; Too deep'],
  ['an empty list', '[]', 'The model refused the request.'],
  [
    'a page',
    '<html><head><title>400</title></head><body><p>Too &lt;long&gt;</p><hr>nginx/1.2</body></html>',
    'Too <long>',
  ],
  [
    'a page without a text',
    '<html><head><title>Request too long</title></head><body></body></html>',
    'Request too long',
  ],
  ['an address in a page', '<b>Refused at 10.0.0.1</b>', 'Refused at ***'],
];
for (const [what, body, message] of texts) {
  test(`a refusal with ${what} keeps its status and says: ${message}`, () => {
    for (const [status, kind] of [
      [400, 'invalid_request'],
      [404, 'not_found'],
      [409, 'conflict'],
      [422, 'unsupported'],
    ] as const) {
      const refusal = refuse(status, body);
      assert.deepEqual([refusal.status, refusal.error.kind, refusal.error.message], [status, kind, message]);
      assert.equal(refusal.answer, undefined);
      assert.equal(refusal.mayRun, false);
    }
  });
}

test('a list with one error is handed on as that error, unchanged', () => {
  const error = '{"error": {"code":400,  "message":"Too long"}}';
  assert.equal(refuse(400, ` [ ${error}\n]`).answer?.body.toString(), error);
});

test('every form of an error’s message is found', () => {
  for (const body of [
    { detail: 'Too long' },
    { detail: [{ loc: ['body'], msg: 'Too long' }] },
    { detail: { message: 'Too long' } },
    { message: ['Too long'] },
    { errors: [{ message: 'Too long' }] },
    { error: 'Too long' },
    { error: { detail: [{ msg: 'Too long' }] } },
    { msg: 'Too long' },
  ])
    assert.equal(refuse(422, body).error.message, 'Too long', JSON.stringify(body));
  const nested = { detail: [{ loc: ['body', 'messages', 0, 'role'], msg: 'Field required' }] };
  assert.equal(refuse(422, nested).error.message, 'messages.0.role: Field required');
});

test('a text longer than an error is cut, one in JSON says nothing', () => {
  const long = refuse(400, `Too long ${'x'.repeat(2 * maxScrubbedBytes)}`);
  assert.match(long.error.message, /^Too long x+…$/);
  assert.ok(long.error.message.length <= 1_000);
  const json = refuse(413, { error: { message: 'x'.repeat(maxScrubbedBytes) } });
  assert.deepEqual([json.status, json.error.message], [413, 'The model takes no request of this size.']);
});

test('any bytes are read as a refusal in little time', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const refusal = classify(400, {}, bytes, now);
      assert.ok(refusal.keyAtFault || refusal.error.kind === 'invalid_request');
      assert.ok(refusal.error.message.length > 0);
    }),
  );
  const startedAt = performance.now();
  for (const unit of ['<head>', '<!--', '<', '<hr', '<script', '<title>', '&amp']) {
    const { error } = refuse(400, `<${unit.repeat(maxScrubbedBytes / unit.length - 1)}`);
    assert.ok(error.message.length <= 1_000);
  }
  assert.ok(performance.now() - startedAt < 3_000);
});

test('a vendor may say that a repetition does not help, but not that it does', () => {
  assert.equal(refuse(409, {}, { 'x-should-retry': 'false' }).error.shouldRetry, false);
  for (const word of ['true', 'perhaps'])
    assert.equal(refuse(409, {}, { 'x-should-retry': word }).error.shouldRetry, undefined);
});

test('our key or account can be refused under other statuses too', () => {
  assert.equal(refuse(400, { error: { message: 'API key not valid. Please pass a valid API key.' } }).keyAtFault, true);
  assert.equal(refuse(400, { error: { details: [{ reason: 'API_KEY_INVALID' }] } }).keyAtFault, true);
  assert.equal(
    refuse(429, { error: { code: 'insufficient_quota', message: 'You exceeded your quota' } }).keyAtFault,
    true,
  );
  assert.equal(
    refuse(400, { type: 'error', error: { message: 'Your credit balance is too low to go on' } }).keyAtFault,
    true,
  );
});

test('a client cannot have a key rested by having its own words quoted', () => {
  assert.equal(
    refuse(400, { error: { message: 'Unknown field: "incorrect API key, API_KEY_INVALID"' } }).keyAtFault,
    false,
  );
});

test('a refusal with usage reports it', () => {
  assert.equal(refuse(400, { error: {}, usage: { input_tokens: 5 } }).hasUsage, true);
});

test('a whole body that is no answer is refused', async () => {
  const request = { path: '/v1/chat/completions', body: { model: 'm', messages: [] } };
  const of = async (body: string, headers = {}) => {
    const error = await relay(request, wholeAnswer(body, 200, headers)).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof UpstreamRefusal, String(error));
    return [error.status, error.error.kind, error.mayRun];
  };
  assert.deepEqual(await of('{}', { 'content-type': 'text/html' }), [502, 'upstream_failed', false]);
  assert.deepEqual(await of('<html></html>'), [502, 'upstream_failed', false]);
  assert.deepEqual(await of('{"id":"c1","choices":['), [502, 'upstream_failed', true]);
  assert.deepEqual(await of(''), [502, 'upstream_failed', true]);
  assert.deepEqual(await of('{"error":{"message":"x","type":"overloaded_error"}}'), [529, 'overloaded', false]);
});

const waits: readonly [what: string, headers: Record<string, string>, body: unknown, ms: number | undefined][] = [
  ['seconds', { 'retry-after': '34' }, {}, 34_000],
  ['a fraction of seconds', { 'retry-after': '0.25' }, {}, 250],
  ['milliseconds', { 'retry-after-ms': '1500', 'retry-after': '9' }, {}, 1_500],
  ['a date', { 'retry-after': 'Fri, 20 Nov 2026 12:01:30 GMT' }, {}, 90_000],
  ['a date that has passed', { 'retry-after': 'Fri, 20 Nov 2026 11:00:00 GMT' }, {}, 0],
  ['RetryInfo', {}, { error: { details: [{}, { retryDelay: '48.9s' }] } }, 48_900],
  ['an absurd time', { 'retry-after': '999999' }, {}, 3_600_000],
  ['a negative time', { 'retry-after': '-5' }, {}, undefined],
  ['nonsense', { 'retry-after': 'soon' }, { error: { details: 'x' } }, undefined],
];
for (const [what, headers, body, ms] of waits) {
  test(`the waiting time is read from ${what}`, () => assert.equal(retryAfterMs(headers, body, now), ms));
}

test('addresses and names of vendors are masked for clients, and JSON stays JSON', () => {
  for (const secret of [
    'sk-proj-abcdefgh1234',
    'sk-ant-api03-xyz_XYZ',
    'sk-ab***yz',
    'AIzaSyA1234567890abcdefg',
    'ya29.a0AfB_byC1234567890',
    'xai-' + 'aB3'.repeat(12),
    'org-H9rGLigVW0aTEjgfHIg3Ircj',
    'org-a1',
    'org-acme',
    'org-my-company-2',
    'org_x7',
    'proj_f4H0b30rYp2y52CGw64BafkL',
    'projects/348715329010',
    'https://api.vendor.example/v1?key=1',
    'http:\\/\\/10.0.0.7:8080\\/x',
    'api.vendor.com:8443',
    '10.1.2.3:443',
    '[2001:db8:0:1:1:1:1:1]:443',
  ]) {
    const clean = scrubText(`{"message":"before ${secret} after\\nline"}`);
    assert.ok(clean.includes('***'), secret);
    assert.ok(!clean.includes(secret), secret);
    assert.match(JSON.parse(clean).message, /^before .*after\nline$/s);
  }
});

test('an organisation is masked wherever a vendor names it, in answers and in logs', () => {
  for (const [text, clean] of [
    ['Rate limit reached in organization org-x on tokens', 'Rate limit reached in organization *** on tokens'],
    ["your organization's (1a2b3c4d-0000-4000-8000-1a2b3c4d5e6f) limit", "your organization's (***) limit"],
    ['organization: acme42 is over its limit', 'organization: *** is over its limit'],
  ] as const)
    assert.equal(scrubText(text), clean);
  assert.equal(maskSecrets('refused for org-x and org-Acme1'), 'refused for *** and ***');
  for (const text of [
    'Your organization must be verified',
    'an org-level limit',
    'the field org_id',
    'your organization is over',
  ])
    assert.deepEqual([scrubText(text), maskSecrets(text)], [text, text]);
});

test('ordinary words, ids and versions stay, byte for byte the same object', () => {
  for (const text of [
    "messages.1.role: Input should be 'user' or 'assistant'",
    'prompt is too long: 3333404 tokens > 200000 maximum',
    '{"request_id":"req_011CczucEpAJhxQrXmpnodCV","@type":"type.googleapis.com/google.rpc.RetryInfo"}',
    'The model `gpt-4.1-nano-wrong` does not exist (v1.2.3, task-based, at 12:30:45)',
  ]) {
    const bytes = Buffer.from(text);
    assert.equal(scrubBytes(bytes), bytes, text);
  }
});

test('masking twice changes nothing more', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'sk-AIzaorg_.:/0123456789abc "\\') }), (text) => {
      assert.equal(scrubText(scrubText(text)), scrubText(text));
    }),
  );
});

test('no text that a client has a vendor quote keeps the gateway busy', () => {
  const startedAt = performance.now();
  for (const unit of ['a-', 'a.', 'ab-', 'aB1_', ':', 'sk-', '1.', 'Bearer ', 'https://', 'f:'])
    scrubText(unit.repeat(maxScrubbedBytes / unit.length));
  assert.ok(performance.now() - startedAt < 3_000);
  const long = { error: { message: 'x'.repeat(maxScrubbedBytes) } };
  assert.equal(refuse(400, long).answer, undefined);
});

test("the vendor's message and its id of the request are kept for operators, scrubbed and bounded, not for clients", () => {
  const body = (message: string) => Buffer.from(JSON.stringify({ error: { message } }));
  const failed = classify(
    500,
    { 'x-request-id': 'req_vendor_1' },
    body(`Engine 7 crashed for key sk-vendor-key-12345 ${'x'.repeat(2_000)}`),
    0,
    'sk-vendor-key-12345',
  );
  assert.equal(failed.vendor?.requestId, 'req_vendor_1');
  assert.match(failed.vendor!.message!, /^Engine 7 crashed for key /);
  assert.equal(failed.vendor!.message!.length, 500);
  assert.ok(!failed.vendor!.message!.includes('sk-vendor-key-12345'));
  assert.equal(failed.error.message, 'The model failed to answer.');
  assert.equal(failed.answer, undefined);
  assert.equal(classify(401, {}, body('bad key'), 0).vendor?.message, 'bad key');
  assert.equal(classify(503, { 'request-id': 'r'.repeat(300) }, Buffer.alloc(0), 0).vendor?.requestId?.length, 100);
  assert.equal(classify(503, {}, Buffer.alloc(0), 0).vendor, undefined);
});
