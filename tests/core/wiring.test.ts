/** The sentences of the wiring check: each names the misfit and its fix. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  defineContextKey,
  defineService,
  type Endpoint,
  type Plugin,
  type PluginInstance,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { Services } from '../../core/gateway/extensions.ts';
import { checkContext, checkServices } from '../../core/gateway/wiring.ts';
import type { InstalledPlugin } from '../../core/http/chain.ts';

const database = defineService<object>('database');
const caller = defineContextKey<object>('caller');
const call = defineContextKey<object>('call');
const noOverride = () => [];

function plugin(name: string, more: Partial<Plugin> = {}): Plugin {
  return { name, config: z.strictObject({}), setup: () => ({}), ...more } as Plugin;
}

function installed(name: string, declared: Partial<Plugin>, part: PluginInstance = {}): InstalledPlugin {
  return { plugin: plugin(name, declared), instance: { handle: (_exchange, next) => next(), ...part } };
}

const chat: Endpoint = {
  method: 'POST',
  path: '/v1/chat/completions',
  operation: 'chat',
  setsOnOpen: [call, upstreamRequest],
};

test('a list in a valid order has no faults', () => {
  const list = [
    plugin('storage', { services: { provides: [database] } }),
    plugin('auth', { services: { requires: [database] } }),
  ];
  assert.deepEqual(checkServices(list, noOverride), []);
  const plugins = [installed('auth', { sets: [caller] }), installed('rate-limit', { requires: [caller, call] })];
  assert.deepEqual(checkContext([chat], plugins, noOverride), []);
});

test('a service below its user is reported with the move that fixes it', () => {
  const list = [
    plugin('auth', { services: { requires: [database] } }),
    plugin('storage', { services: { provides: [database] } }),
  ];
  assert.deepEqual(checkServices(list, noOverride), [
    '"auth" needs the service "database", but "storage", which provides it, stands below: move "storage" above "auth".',
  ]);
});

test('a required service without a provider is reported with the plugin to add', () => {
  assert.deepEqual(
    checkServices([plugin('auth', { services: { requires: [database] } })], () => ['storage']),
    ['"auth" needs the service "database", which no plugin of the list provides: add "storage" above "auth".'],
  );
});

test('a plugin that is listed twice, and two providers of one service, are faults', () => {
  const list = [
    plugin('one', { services: { provides: [database] } }),
    plugin('two', { services: { provides: [database] } }),
    plugin('two'),
  ];
  assert.deepEqual(checkServices(list, noOverride), [
    '"two" stands twice in the list: remove one.',
    '"one" and "two" both provide the service "database": keep one.',
  ]);
});

test('a context value that is read before it is set is reported with the endpoint and the move', () => {
  const plugins = [installed('rate-limit', { requires: [caller] }), installed('auth', { sets: [caller] })];
  assert.deepEqual(checkContext([chat], plugins, noOverride), [
    'On POST /v1/chat/completions "rate-limit" requires the context value "caller", but "auth", which sets it, stands below: move "auth" above "rate-limit".',
  ]);
});

test('a required context value that no plugin sets is a problem', () => {
  const plugins = [installed('rate-limit', { requires: [caller] }), installed('billing', { requiresAtEnd: [caller] })];
  assert.deepEqual(
    checkContext([chat], plugins, () => ['auth']),
    [
      'On POST /v1/chat/completions "rate-limit" requires the context value "caller", which no plugin sets: add "auth" above "rate-limit".',
      'On POST /v1/chat/completions "billing" requires the context value "caller" at the end, which no plugin sets: add "auth" to the list.',
    ],
  );
});

test('an endpoint that forwards needs a plugin that sets the upstream', () => {
  const bare: Endpoint = { method: 'POST', path: '/x', operation: 'x' };
  assert.deepEqual(
    checkContext([bare], [], () => ['passthrough']),
    ['On POST /x no plugin sets where to forward to: add "passthrough" to the list.'],
  );
});

test('a plugin that does not apply to an endpoint is left out of its chain', () => {
  const plugins = [
    installed('auth', { sets: [caller] }, { applies: () => false }),
    installed('rate-limit', { requires: [caller] }),
  ];
  assert.equal(checkContext([chat], plugins, noOverride).length, 1);
});

test('both plugins that set a value must precede the one that uses it', () => {
  const [plans, multiplier] = [installed('plans', { sets: [caller] }), installed('multiplier', { sets: [caller] })];
  const billing = installed('billing', { optional: [caller] });
  assert.deepEqual(checkContext([chat], [plans, multiplier, billing], noOverride), []);
  assert.deepEqual(checkContext([chat], [plans, billing, multiplier], noOverride), [
    'On POST /v1/chat/completions "billing" uses the context value "caller", but "multiplier", which sets it, stands below: move "multiplier" above "billing".',
  ]);
});

test('two endpoints at one address are a problem', () => {
  const plugins = [installed('one', {}, { endpoints: [chat] }), installed('two', {}, { endpoints: [chat] })];
  assert.deepEqual(checkContext([], plugins, noOverride), [
    '"one" and "two" both answer POST /v1/chat/completions: remove one of them.',
  ]);
});

test('two plugins with WebSockets at one path are a fault; a page may share the path', () => {
  const live = { path: chat.path, accept: () => {} };
  assert.deepEqual(
    checkContext([], [installed('one', {}, { endpoints: [chat], addresses: { sockets: [live] } })], noOverride),
    [],
  );
  const plugins = [
    installed('one', {}, { addresses: { sockets: [live] } }),
    installed('two', {}, { addresses: { sockets: [live] } }),
  ];
  assert.deepEqual(checkContext([], plugins, noOverride), [
    '"one" and "two" both answer WebSockets at /v1/chat/completions: remove one of them.',
  ]);
});

test('an opening that uses a value set after it is reported with the plugin to move', () => {
  const kept: Endpoint = { ...chat, optional: [caller] };
  const auth = installed('auth', { sets: [caller] });
  const limit = installed('rate-limit', { requires: [call] });
  assert.deepEqual(checkContext([kept], [auth, limit], noOverride), []);
  assert.deepEqual(checkContext([kept], [limit], noOverride), [], 'no plugin sets it: the opening does without it');
  assert.deepEqual(checkContext([kept], [limit, auth], noOverride), [
    'On POST /v1/chat/completions the request is opened before "rate-limit" and uses the context value "caller", which "auth" sets after that: move "auth" above "rate-limit".',
  ]);
  assert.deepEqual(checkContext([kept], [installed('both', { optional: [call], sets: [caller] })], noOverride), [
    'On POST /v1/chat/completions the request is opened before "both" and uses the context value "caller", which "both" sets after that: that cannot be.',
  ]);
});

test("a declared service that these settings do not provide is refused with its user's name", () => {
  const counters = defineService<object>('counters');
  const storage = plugin('storage', { services: { provides: [database, counters] } });
  const user = plugin('sharing', { services: { requires: [database, counters] } });
  const services = new Services();
  assert.deepEqual(services.begin(storage, []), []);
  services.provide(database, {});
  assert.deepEqual(services.begin(user, [storage]), [
    '"sharing" needs the service "counters", which "storage" does not provide with these settings.',
  ]);
});

test('an optional service found in a setup above its provider is reported with the move', () => {
  const storage = plugin('storage', { services: { provides: [database] } });
  const user = plugin('sharing', { services: { optional: [database] } });
  const services = new Services();
  services.begin(user, []);
  assert.equal(services.find(database, user), undefined);
  services.begin(storage, [user]);
  services.provide(database, {});
  assert.notEqual(services.find(database, user), undefined, 'at run time it is there');
  assert.deepEqual(services.complete([user, storage]), [
    '"sharing" uses the service "database" from its setup on, but "storage", which provides it, stands below: move "storage" above "sharing".',
  ]);
});

test('an optional service without a provider in the list is no fault', () => {
  const user = plugin('sharing', { services: { optional: [database] } });
  const services = new Services();
  services.begin(user, []);
  services.find(database, user);
  assert.deepEqual(services.complete([user]), []);
});
