/** Asks a gateway in front of the sandbox vendor, or that vendor alone, and holds what comes against the specification. */
import assert from 'node:assert/strict';
import type { z } from 'zod';
import { startVendor } from '../../plugins/sandbox/vendor.ts';
import { startGateway } from '../helpers/gateway.ts';
import { compactResource, eventSchemas, listedItems, responseResource } from './schema.ts';

export const families = ['chat', 'responses', 'messages', 'gemini'] as const;
// biome-ignore lint/suspicious/noExplicitAny: answers of any shape are read here, after a schema has held them.
export type Json = Record<string, any>;

export interface Stage {
  /**
   * Origin of the gateway: a model named after each family, `model-socket` for a vendor that is called over WebSocket, each also
   * `-eager`.
   */
  readonly origin: string;
  /** The vendor itself. */
  readonly vendor: string;
  stop(): Promise<void>;
}

export async function startStage(): Promise<Stage> {
  const vendor = await startVendor();
  const bases = {
    chat: `${vendor.origin}/v1`,
    responses: `${vendor.origin}/v1`,
    messages: vendor.origin,
    gemini: `${vendor.origin}/v1beta`,
  };
  const gateway = await startGateway(
    JSON.stringify({
      gateway: 'open-responses',
      listen: 0,
      plugins: ['providers', 'models', 'route', 'protocol-convert', 'websockets'],
      providers: {
        ...Object.fromEntries(families.map((name) => [name, { keys: 'sk-test', speaks: { [name]: bases[name] } }])),
        socket: {
          keys: 'sk-test',
          speaks: { responses: bases.responses },
          dialect: { responses: { websocket: true } },
        },
      },
      models: Object.fromEntries(
        [...families, 'socket'].flatMap((name) =>
          ['', '-eager'].map((end) => [`model-${name}${end}`, { owned_by: 'sandbox', targets: [name], price: 'free' }]),
        ),
      ),
    }),
  );
  return {
    origin: gateway.origin,
    vendor: vendor.origin,
    async stop() {
      await gateway.stop();
      await vendor.close();
    },
  };
}

export async function post(origin: string, path: string, body: object): Promise<Response> {
  return fetch(`${origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
    body: JSON.stringify(body),
  });
}

/** The whole answer, valid. */
export async function whole(origin: string, body: object): Promise<Json> {
  const answer = await post(origin, '/v1/responses', body);
  const reply = await answer.text();
  assert.equal(answer.status, 200, reply);
  return valid(responseResource, JSON.parse(reply) as Json, reply);
}

export async function compacted(origin: string, body: object): Promise<Json> {
  const answer = await post(origin, '/v1/responses/compact', body);
  const reply = await answer.text();
  assert.equal(answer.status, 200, reply);
  return valid(compactResource, JSON.parse(reply) as Json, reply);
}

export async function kept(origin: string, id: string): Promise<{ response: Json; items: Json[] }> {
  const headers = { authorization: 'Bearer sk-test' };
  const response = (await (await fetch(`${origin}/v1/responses/${id}`, { headers })).json()) as Json;
  const list = (await (await fetch(`${origin}/v1/responses/${id}/input_items`, { headers })).json()) as Json;
  return {
    response: valid(responseResource, response, id),
    items: valid(listedItems, list, JSON.stringify(list))['data'] as Json[],
  };
}

/** All events of a stream, each valid and numbered. */
export async function streamed(origin: string, body: object): Promise<Json[]> {
  const answer = await post(origin, '/v1/responses', { ...body, stream: true });
  const reply = await answer.text();
  assert.equal(answer.status, 200, reply);
  const events = reply
    .split('\n\n')
    .flatMap((frame) => frame.split('\n').filter((line) => line.startsWith('data: {')))
    .map((line) => JSON.parse(line.slice('data: '.length)) as Json);
  checkEvents(events);
  return events;
}

export function checkEvents(events: readonly Json[]): void {
  for (const [index, event] of events.entries()) {
    const schema = eventSchemas.get(String(event['type']));
    assert.ok(schema, `unknown event: ${JSON.stringify(event)}`);
    valid(schema, event, JSON.stringify(event));
    assert.equal(event['sequence_number'], index);
  }
}

function valid(schema: z.ZodType, value: Json, shown: string): Json {
  const { error } = schema.safeParse(value);
  const issues = error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  assert.equal(issues, undefined, `${issues?.join('; ')} in ${shown}`);
  return value;
}
