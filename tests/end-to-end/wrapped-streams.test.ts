/** A plugin that throws in a stream which it wraps: every client gets its protocol's error event, and the exchange has failed. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { until } from '../helpers/until.ts';
import { startVendor, type Vendor } from '../helpers/vendor.ts';

const directory = temporaryDirectory('wrapped-');
let vendor: Vendor;
let gateway: TestGateway;

/** Passes the first chunk on and then throws what the request's header says. */
const source = (name: string) => `
import { definePlugin } from '${pathToFileURL('core/contract/contract.ts')}';
import { GatewayError } from '${pathToFileURL('core/contract/errors.ts')}';
import { z } from '${pathToFileURL('core/contract/schema.ts')}';
const errors = {
  refusal: () => new GatewayError('forbidden', 'These words are not allowed.', { code: 'content_rule' }),
  bug: () => new TypeError('secret detail'),
};
async function* wrapped(body, error) {
  for await (const chunk of body) {
    yield chunk;
    throw error();
  }
}
export default definePlugin({
  name: '${name}',
  config: z.strictObject({}),
  setup: (host) => ({
    async handle(exchange, next) {
      if ('${name}' === 'above') exchange.defer(({ kind, error }) => host.log.info({ kind, reason: error?.code }, 'outcome'));
      const answer = await next();
      const [place, what] = (exchange.request.headers['x-break'] ?? '').split(' ');
      return place === '${name}' ? { ...answer, body: wrapped(answer.body, errors[what]) } : answer;
    },
  }),
});`;

const chunk = (delta: object, more = {}) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;

before(async () => {
  for (const name of ['above', 'below']) await writeFile(join(directory, `${name}.ts`), source(name));
  vendor = await startVendor();
  vendor.play({
    headers: { 'content-type': 'text/event-stream' },
    body: `${chunk({ role: 'assistant', content: 'One' })}${chunk({ content: ' two' })}`,
    cuts: [chunk({ role: 'assistant', content: 'One' }).length],
    hang: true,
  });
  gateway = await startGateway(
    JSON.stringify({
      gateway: 'wrapped',
      plugins: ['./above.ts', 'providers', 'models', 'route', 'protocol-convert', './below.ts'],
      providers: { vendor: { keys: 'vendor-key', speaks: { chat: `${vendor.origin}/v1` } } },
      models: { m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' } },
    }),
    { directory },
  );
});
after(async () => {
  await gateway.stop();
  await vendor.stop();
});

const clients = {
  chat: ['/v1/chat/completions', { stream: true, messages: [{ role: 'user', content: 'x' }] }],
  responses: ['/v1/responses', { stream: true, input: 'x' }],
  messages: ['/v1/messages', { stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }],
  gemini: ['/v1beta/models/m:streamGenerateContent?alt=sse', { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }],
} as const;

for (const [client, [path, body]] of Object.entries(clients))
  for (const place of ['above', 'below'])
    for (const what of ['refusal', 'bug'])
      test(`${client}: a ${what} of the plugin ${place} ends the stream by an error event`, async () => {
        const before = gateway.lines.length;
        const answer = await fetch(`${gateway.origin}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-break': `${place} ${what}` },
          body: JSON.stringify(client === 'gemini' ? body : { model: 'm', ...body }),
        });
        assert.equal(answer.status, 200);
        const text = await answer.text(); // Rejects where the connection breaks.
        const frames = text.split(/\r?\n\r?\n/).filter((frame) => frame !== '');
        const last = JSON.parse(/^data: (.*)$/m.exec(frames.findLast((frame) => frame.includes('data: {'))!)![1]!);
        assert.match(JSON.stringify(last), what === 'refusal' ? /These words are not allowed\./ : /error/);
        assert.doesNotMatch(text, /secret detail/);
        const logged = () => gateway.lines.slice(before).find((line) => line.includes('"outcome"'));
        const outcome = JSON.parse(await until('the outcome is logged', logged));
        assert.equal(outcome.kind, 'failed');
        assert.equal(outcome.reason, what === 'refusal' ? 'content_rule' : undefined);
      });
