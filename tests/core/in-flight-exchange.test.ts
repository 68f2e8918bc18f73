/** What a client learns when something throws that is no error for clients: of a bug 500, of what passes by itself 503. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { markPassing } from '../../core/contract/errors.ts';
import { createLog } from '../../core/gateway/log.ts';
import { systemClock } from '../../core/gateway/system.ts';
import { BodyReader } from '../../core/http/body.ts';
import { trustedProxies } from '../../core/http/client-address.ts';
import { LiveExchange } from '../../core/http/exchange.ts';
import { InFlightExchange } from '../../core/http/in-flight-exchange.ts';
import { IncomingRequest } from '../../core/http/incoming-request.ts';

const lines: string[] = [];
const services = {
  bodies: new BodyReader({ maxBytes: 1, maxBytesInFlight: 1, maxBytesPerAccount: 1, maxDecoding: 1, maxValues: 1 }),
  errorShapes: [],
  clock: systemClock,
  isClosing: () => false,
  onSettled: () => undefined,
};
const known = [{ logFields: () => ({ account_id: 'account-1' }) }, { logFields: () => ({ trace_id: 'trace-1' }) }];
const broken = {
  logFields: () => {
    throw new Error('a plugin has a bug');
  },
};
const logs = { log: createLog('info', (line) => void lines.push(line)), sources: [known[0]!, broken, known[1]!] };
let fail: (exchange: LiveExchange) => Error = () => new Error('no test has said what fails');
const server = createServer((incoming, outgoing) => {
  const request = new IncomingRequest(incoming, '/', '', {}, trustedProxies([]));
  const endpoint = { method: 'GET', path: '/', operation: 'test' } as const;
  const exchange = new LiveExchange('id', endpoint, request, incoming, outgoing, systemClock, logs);
  new InFlightExchange(exchange, 10_000, services).begin((running) => Promise.reject(fail(running)));
});
await once(server.listen(0, '127.0.0.1'), 'listening');
after(() => server.close());

async function send() {
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const text = await answer.text();
  return {
    status: answer.status,
    retryAfter: answer.headers.get('retry-after'),
    shouldRetry: answer.headers.get('x-should-retry'),
    text,
  };
}

const away = () => new Error('Failed query: select 1', { cause: markPassing(new Error('the database is away')) });

test('a bug is a 500, and is logged each time', async () => {
  fail = () => new Error('a bug of ours');
  const { status, retryAfter, text } = await send();
  await send();
  assert.deepEqual([status, retryAfter], [500, null]);
  assert.doesNotMatch(text, /a bug of ours/);
  const reported = lines.splice(0).filter((line) => line.includes('a bug of ours'));
  assert.equal(reported.length, 2);
  // What the plugins say of the request, but for the one that has a bug in this.
  for (const line of reported) {
    const { request_id: id, account_id: account, trace_id: trace } = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual([id, account, trace], ['id', 'account-1', 'trace-1']);
  }
});

test('a passing failure is a 503 with retry-after, and is logged once', async () => {
  fail = away;
  for (const { status, retryAfter, shouldRetry, text } of [await send(), await send()]) {
    assert.deepEqual([status, retryAfter, shouldRetry], [503, '2', null]);
    assert.doesNotMatch(text, /query|away/);
  }
  assert.equal(lines.splice(0).filter((line) => line.includes('the database is away')).length, 1);
});

test('after a request was sent to an upstream, the error does not advise a repetition', async () => {
  fail = (exchange) => {
    exchange.hasSent = true;
    return away();
  };
  const { status, retryAfter, shouldRetry } = await send();
  assert.deepEqual([status, retryAfter, shouldRetry], [503, null, 'false']);
});
