/** The gateway's own error shape: a code for every kind, a body as configured, headers as they were. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorKind, errorStatus, GatewayError } from '../../../core/contract/errors.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { renderError } from '../../../core/http/answers.ts';
import { errorShape } from '../../../plugins/common/domain/error-shape.ts';
import { codeOf } from '../../../plugins/error-shape/codes.ts';
import plugin from '../../../plugins/error-shape/index.ts';
import { fakeExchange, fakeHost, setUp } from '../../helpers/fakes.ts';

const bodyOf = (answer: { body: unknown }) => JSON.parse(answer.body as string) as Record<string, unknown>;

test("every kind of error has a code, and the interface's codes have their statuses", () => {
  for (const kind of Object.keys(errorStatus) as ErrorKind[])
    assert.match(codeOf(new GatewayError(kind, 'x')), /^[A-Z_]{5,}$/);
  const fixed: readonly [ErrorKind, number, string][] = [
    ['invalid_request', 400, 'INVALID_REQUEST'],
    ['unauthenticated', 401, 'INVALID_API_KEY'],
    ['insufficient_balance', 402, 'INSUFFICIENT_BALANCE'],
    ['rate_limited', 429, 'RATE_LIMITED'],
    ['upstream_failed', 502, 'UPSTREAM_ERROR'],
    ['overloaded', 503, 'UPSTREAM_ERROR'],
    ['upstream_timeout', 504, 'UPSTREAM_ERROR'],
  ];
  for (const [kind, status, code] of fixed)
    assert.deepEqual([errorStatus[kind], codeOf(new GatewayError(kind, 'x'))], [status, code]);
});

test('an unknown model and an unknown path have different codes', () => {
  assert.equal(codeOf(new GatewayError('not_found', 'x', { code: 'model_not_found' })), 'MODEL_NOT_FOUND');
  assert.equal(codeOf(new GatewayError('not_found', 'x', { code: 'unknown_url' })), 'NOT_FOUND');
  assert.equal(codeOf(new GatewayError('forbidden', 'x', { code: 'model_not_found' })), 'FORBIDDEN');
  assert.equal(codeOf(new GatewayError('not_found', 'x', { code: 'constructor' })), 'NOT_FOUND');
});

test("the gateway's shape precedes the protocol's and a vendor's own error, and headers stay", async () => {
  const part = await setUp(plugin, fakeHost());
  const endpoint = { renderError: () => ({ status: 500, headers: {}, body: 'the protocol' }) };
  const exchange = fakeExchange({ endpoint });
  const error = new GatewayError('rate_limited', 'Slower.', {
    retryAfterMs: 1_500,
    shouldRetry: true,
    headers: { 'x-ratelimit-limit-requests': '5' },
  });
  const refusal = new UpstreamRefusal(error, { status: 429, answer: { status: 429, headers: {}, body: 'the vendor' } });
  for (const thrown of [error, refusal]) {
    const { answer } = renderError(thrown, exchange, [part]);
    assert.equal(answer.status, 429);
    assert.deepEqual(bodyOf(answer), { code: 'RATE_LIMITED', message: 'Slower.' });
  }
  assert.deepEqual(renderError(error, exchange, [part]).answer.headers, {
    'x-ratelimit-limit-requests': '5',
    'retry-after': '2',
    'x-should-retry': 'true',
    'content-type': 'application/json',
  });
});

test('a message that does not name the field at fault gets its name, as there is no other member for it', async () => {
  const part = await setUp(plugin, fakeHost());
  const report = (message: string, field?: string) => {
    const error = new GatewayError('invalid_request', message, field === undefined ? {} : { field });
    return bodyOf(part.renderError!(error, undefined)!)['message'];
  };
  assert.equal(report("Invalid value: 'bogus'.", 'quality'), 'Invalid value: \'bogus\'. Field: "quality".');
  assert.equal(report('Too short.', 'messages[2].content'), 'Too short. Field: "messages[2].content".');
  assert.equal(report('Not an integer.', 'n'), 'Not an integer. Field: "n".');
  for (const [message, field] of [
    ['The field "n" must be a whole number.', 'n'],
    ['Two Host headers.', 'host'],
    ['Its content is empty.', 'messages.2.content'],
    ['It takes no more images.', 'images[3]'],
    ['Nothing is named.', undefined],
  ] as const)
    assert.equal(report(message, field), message);
});

test('a request to no endpoint is answered in the same shape', async () => {
  const part = await setUp(plugin, fakeHost());
  const { answer } = renderError(new GatewayError('not_found', 'Nothing.'), undefined, [part]);
  assert.deepEqual(bodyOf(answer), { code: 'NOT_FOUND', message: 'Nothing.' });
});

test('the body has the configured members and texts, and no part of a message is read as a placeholder', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, { body: { err: 'E-{CODE}', text: '{message} [{request_id}]' } });
  const error = new GatewayError('forbidden', 'Not {CODE} "you" $& é');
  const exchange = fakeExchange({ id: 'request-7' });
  const expected = { err: 'E-FORBIDDEN', text: 'Not {CODE} "you" $& é [request-7]' };
  assert.deepEqual(bodyOf(part.renderError!(error, exchange)!), expected);
  assert.deepEqual(host.get(errorShape).members(error, 'request-7'), expected);
});

test('an unknown placeholder is a fault of the configuration', async () => {
  await assert.rejects(async () => setUp(plugin, fakeHost(), { body: { code: '{code}' } }));
  await assert.rejects(async () => setUp(plugin, fakeHost(), { body: {} }));
});
