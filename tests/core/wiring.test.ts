/** The sentences of the wiring check: each names the misfit and its fix. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Seat } from '../../core/chain.ts';
import {
  defineFact,
  defineService,
  type Endpoint,
  type Part,
  type Plugin,
  upstreamRequest,
} from '../../core/contract.ts';
import { z } from '../../core/schema.ts';
import { checkFacts, checkServices } from '../../core/wiring.ts';

const database = defineService<object>('database');
const caller = defineFact<object>('caller');
const call = defineFact<object>('call');
const nobody = () => [];

function plugin(name: string, more: Partial<Plugin> = {}): Plugin {
  return { name, config: z.strictObject({}), setup: () => ({}), ...more } as Plugin;
}

function seat(name: string, declared: Partial<Plugin>, part: Part = {}): Seat {
  return { plugin: plugin(name, declared), part: { handle: (_exchange, next) => next(), ...part } };
}

const chat: Endpoint = {
  method: 'POST',
  path: '/v1/chat/completions',
  operation: 'chat',
  states: [call, upstreamRequest],
};

test('a list that fits has nothing to say', () => {
  const list = [plugin('storage', { provides: [database] }), plugin('auth', { needs: [database] })];
  assert.deepEqual(checkServices(list, nobody), []);
  const seats = [seat('auth', { writes: [caller] }), seat('rate-limit', { reads: [caller, call] })];
  assert.deepEqual(checkFacts([chat], seats, nobody), []);
});

test('a service that stands below its user is a sentence that says what to move', () => {
  const list = [plugin('auth', { needs: [database] }), plugin('storage', { provides: [database] })];
  assert.deepEqual(checkServices(list, nobody), [
    '"auth" needs the service "database", but "storage", which provides it, stands below: move "storage" above "auth".',
  ]);
});

test('a service that nobody provides is a sentence that says what to add', () => {
  assert.deepEqual(
    checkServices([plugin('auth', { needs: [database] })], () => ['storage']),
    ['"auth" needs the service "database", which no plugin of the list provides: add "storage" above "auth".'],
  );
});

test('a plugin that stands twice and two that provide the same service are told', () => {
  const list = [plugin('one', { provides: [database] }), plugin('two', { provides: [database] }), plugin('two')];
  assert.deepEqual(checkServices(list, nobody), [
    '"two" stands twice in the list: remove one.',
    '"one" and "two" both provide the service "database": keep one.',
  ]);
});

test('a fact that is read before it is stated is a sentence that names the endpoint and the move', () => {
  const seats = [seat('rate-limit', { reads: [caller] }), seat('auth', { writes: [caller] })];
  assert.deepEqual(checkFacts([chat], seats, nobody), [
    'On POST /v1/chat/completions "rate-limit" reads the fact "caller", but "auth", which states it, stands below: move "auth" above "rate-limit".',
  ]);
});

test('a fact that nobody states, read or awaited, is told', () => {
  const seats = [seat('rate-limit', { reads: [caller] }), seat('billing', { awaits: [caller] })];
  assert.deepEqual(
    checkFacts([chat], seats, () => ['auth']),
    [
      'On POST /v1/chat/completions "rate-limit" reads the fact "caller", which nobody states: add "auth" above "rate-limit".',
      'On POST /v1/chat/completions "billing" waits for the fact "caller", which nobody states: add "auth" to the list.',
    ],
  );
});

test('an endpoint that forwards needs somebody who states where to', () => {
  const bare: Endpoint = { method: 'POST', path: '/x', operation: 'x' };
  assert.deepEqual(
    checkFacts([bare], [], () => ['passthrough']),
    ['On POST /x nobody states where to forward to: add "passthrough" to the list.'],
  );
});

test('a plugin that does not apply to an endpoint is not counted in its chain', () => {
  const seats = [seat('auth', { writes: [caller] }, { applies: () => false }), seat('rate-limit', { reads: [caller] })];
  assert.equal(checkFacts([chat], seats, nobody).length, 1);
});

test('of two who state a fact both stand above whoever uses it', () => {
  const [plans, multiplier] = [seat('plans', { writes: [caller] }), seat('multiplier', { writes: [caller] })];
  const billing = seat('billing', { finds: [caller] });
  assert.deepEqual(checkFacts([chat], [plans, multiplier, billing], nobody), []);
  assert.deepEqual(checkFacts([chat], [plans, billing, multiplier], nobody), [
    'On POST /v1/chat/completions "billing" uses the fact "caller", but "multiplier", which states it, stands below: move "multiplier" above "billing".',
  ]);
});

test('two endpoints at one address are told', () => {
  const seats = [seat('one', {}, { endpoints: [chat] }), seat('two', {}, { endpoints: [chat] })];
  assert.deepEqual(checkFacts([], seats, nobody), [
    '"one" and "two" both answer POST /v1/chat/completions: remove one of them.',
  ]);
});

test('two plugins that take WebSockets at one path are told; a page may stand there too', () => {
  const live = { path: chat.path, accept: () => {} };
  assert.deepEqual(checkFacts([], [seat('one', {}, { endpoints: [chat], sockets: [live] })], nobody), []);
  const seats = [seat('one', {}, { sockets: [live] }), seat('two', {}, { sockets: [live] })];
  assert.deepEqual(checkFacts([], seats, nobody), [
    '"one" and "two" both answer WebSockets at /v1/chat/completions: remove one of them.',
  ]);
});

test('an opening that uses a fact which is stated only after it is told what to move', () => {
  const kept: Endpoint = { ...chat, finds: [caller] };
  const auth = seat('auth', { writes: [caller] });
  const limit = seat('rate-limit', { reads: [call] });
  assert.deepEqual(checkFacts([kept], [auth, limit], nobody), []);
  assert.deepEqual(checkFacts([kept], [limit], nobody), [], 'nobody states it: the opening does without');
  assert.deepEqual(checkFacts([kept], [limit, auth], nobody), [
    'On POST /v1/chat/completions the request is opened before "rate-limit" and uses the fact "caller", which "auth" states after that: move "auth" above "rate-limit".',
  ]);
  assert.deepEqual(checkFacts([kept], [seat('both', { finds: [call], writes: [caller] })], nobody), [
    'On POST /v1/chat/completions the request is opened before "both" and uses the fact "caller", which "both" states after that: that cannot be.',
  ]);
});
