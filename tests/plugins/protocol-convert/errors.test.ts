import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorKind, errorStatus, GatewayError } from '../../../core/contract/errors.ts';
import { fakeExchange } from '../../helpers/fakes.ts';
import { endpointFor } from './harness.ts';

const exchange = fakeExchange({ id: 'x1' });
const paths = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/m:generateContent',
};

function render(protocol: keyof typeof paths, error: GatewayError) {
  const answer = endpointFor(paths[protocol]).endpoint.renderError!(error, exchange);
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.status, error.status);
  return JSON.parse(answer.body as string);
}

const kinds = Object.keys(errorStatus) as ErrorKind[];

for (const kind of kinds) {
  test(`${kind} has the envelope of each protocol, with message, code and field`, () => {
    const error = new GatewayError(kind, 'What happened.', { field: 'messages[0]', code: 'why' });
    for (const protocol of ['chat', 'responses'] as const) {
      const { error: reported } = render(protocol, error);
      assert.equal(reported.message, 'What happened.');
      assert.equal(reported.param, 'messages[0]');
      assert.equal(reported.code, kind === 'rate_limited' ? 'rate_limit_exceeded' : 'why');
      const own = new GatewayError(kind, 'x', { code: 'why', ownCode: true });
      assert.equal(render(protocol, own).error.code, 'why');
      assert.equal(typeof reported.type, 'string');
    }
    const message = render('messages', error);
    assert.deepEqual(Object.keys(message), ['type', 'error', 'request_id']);
    assert.equal(message.request_id, 'req_x1');
    assert.deepEqual(
      { ...message.error, type: '' },
      { type: '', message: 'What happened.', details: { error_code: 'why' } },
    );
    const { error: status } = render('gemini', error);
    assert.deepEqual([status.code, status.message], [error.status, 'What happened.']);
    assert.match(status.status, /^[A-Z_]+$/);
    assert.deepEqual(status.details[0], {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'WHY',
      domain: 'gateway',
    });
    assert.equal(status.details[1].fieldViolations[0].field, 'messages[0]');
  });
}

test('the types are those that official clients look for', () => {
  const types = (kind: ErrorKind, code?: string) => {
    const error = new GatewayError(kind, 'x', code === undefined ? {} : { code });
    return [
      render('chat', error).error.type,
      render('messages', error).error.type,
      render('gemini', error).error.status,
    ];
  };
  assert.deepEqual(types('invalid_request'), ['invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT']);
  assert.deepEqual(types('unauthenticated'), ['invalid_request_error', 'authentication_error', 'UNAUTHENTICATED']);
  assert.deepEqual(types('insufficient_balance'), ['insufficient_quota', 'billing_error', 'FAILED_PRECONDITION']);
  assert.deepEqual(types('forbidden'), ['permission_error', 'permission_error', 'PERMISSION_DENIED']);
  assert.deepEqual(types('not_found'), ['invalid_request_error', 'not_found_error', 'NOT_FOUND']);
  assert.deepEqual(types('too_large'), ['invalid_request_error', 'request_too_large', 'INVALID_ARGUMENT']);
  assert.deepEqual(types('rate_limited', 'rpm'), ['requests', 'rate_limit_error', 'RESOURCE_EXHAUSTED']);
  assert.deepEqual(types('rate_limited', 'tpm'), ['tokens', 'rate_limit_error', 'RESOURCE_EXHAUSTED']);
  assert.deepEqual(types('upstream_failed'), ['server_error', 'api_error', 'UNAVAILABLE']);
  assert.deepEqual(types('overloaded'), ['server_error', 'overloaded_error', 'UNAVAILABLE']);
  assert.deepEqual(types('upstream_timeout'), ['server_error', 'timeout_error', 'DEADLINE_EXCEEDED']);
});

test('a wrong key and an empty balance have the codes that chat clients know', () => {
  assert.equal(render('chat', new GatewayError('unauthenticated', 'x')).error.code, 'invalid_api_key');
  assert.equal(render('chat', new GatewayError('insufficient_balance', 'x')).error.code, 'insufficient_quota');
  assert.equal(
    render('chat', new GatewayError('not_found', 'x', { code: 'model_not_found' })).error.code,
    'model_not_found',
  );
});

test('generate-content tells how long to wait, in whole seconds rounded up', () => {
  const { details } = render('gemini', new GatewayError('rate_limited', 'x', { retryAfterMs: 1_001 })).error;
  assert.deepEqual(details, [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' }]);
});
