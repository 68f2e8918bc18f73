/** Strict mode is asked for only with schemas that it takes; elsewhere it is left off and named as lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../core/json/json.ts';
import type { Family } from '../helpers/recordings.ts';
import { type TranslatedRequest, translated } from './translated.ts';

const text = { type: 'string' };
const closed = { additionalProperties: false };
const object = (properties: JsonObject, required: readonly string[], more: JsonObject = closed): JsonObject => ({
  type: 'object',
  properties,
  required,
  ...more,
});

const fitting: Readonly<Record<string, JsonObject>> = {
  flat: object({ a: text, b: { type: ['string', 'null'] } }, ['a', 'b']),
  nested: object({ a: object({ b: text }, ['b']), c: { type: 'array', items: object({ d: text }, ['d']) } }, [
    'a',
    'c',
  ]),
};
const unfitting: Readonly<Record<string, JsonObject>> = {
  'an optional member': object({ a: text, b: text }, ['a']),
  'an open object': object({ a: text }, ['a'], {}),
  'an optional member further in': object({ a: object({ b: text, c: text }, ['b']) }, ['a']),
  'an optional member in a list': object({ a: { type: 'array', items: object({ b: text }, []) } }, ['a']),
  'an optional member in a definition': object({ a: { $ref: '#/$defs/d' } }, ['a'], {
    ...closed,
    $defs: { d: object({ b: text }, []) },
  }),
  'an optional member in a branch': object({ a: { anyOf: [object({ b: text }, []), { type: 'null' }] } }, ['a']),
  'free members': object({ a: text }, ['a'], { additionalProperties: text }),
  'a keyword of its own': object({ a: { type: 'array', items: text, uniqueItems: true } }, ['a']),
};

/** What upstreams check of a strict schema: every object closed, all of its members required. */
function isTaken(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isTaken);
  if (typeof schema !== 'object' || schema === null) return true;
  const { type, properties, required, additionalProperties, uniqueItems, ...rest } = schema as JsonObject;
  if (uniqueItems !== undefined) return false;
  if (type === 'object' || properties !== undefined) {
    if (additionalProperties !== false) return false;
    const names = Object.keys((properties ?? {}) as JsonObject);
    if (!names.every((name) => ((required ?? []) as string[]).includes(name))) return false;
  }
  return [...Object.values((properties ?? {}) as JsonObject), ...Object.values(rest)].every(isTaken);
}

const toolRequests: Partial<Record<Family, (schema: JsonObject) => JsonObject>> = {
  gemini: (schema) => ({
    contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema }] }],
    toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } },
  }),
  messages: (schema) => ({
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ name: 'f', input_schema: schema, strict: true }],
  }),
  chat: (schema) => ({
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ type: 'function', function: { name: 'f', parameters: schema, strict: true } }],
  }),
  responses: (schema) => ({ input: 'Hi', tools: [{ type: 'function', name: 'f', parameters: schema, strict: true }] }),
};
const outputRequests: Partial<Record<Family, (schema: JsonObject) => JsonObject>> = {
  messages: (schema) => ({
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hi' }],
    output_config: { format: { type: 'json_schema', schema } },
  }),
  chat: (schema) => ({
    messages: [{ role: 'user', content: 'Hi' }],
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema, strict: true } },
  }),
  responses: (schema) => ({
    input: 'Hi',
    text: { format: { type: 'json_schema', name: 'a', schema, strict: true } },
  }),
};

const names: Readonly<Record<Family, { tool: string; output: string }>> = {
  chat: { tool: 'tools.function.strict', output: 'response_format.json_schema.strict' },
  responses: { tool: 'strict', output: 'text.format.strict' },
  messages: { tool: 'strict', output: 'output_config.format.schema' },
  gemini: { tool: 'toolConfig.functionCallingConfig.mode', output: '' },
};

interface Sent {
  readonly strict: unknown;
  readonly schema: JsonObject;
}

function sentTool({ body }: TranslatedRequest): Sent {
  const [tool] = body['tools'] as JsonObject[];
  const declared = (tool!['function'] ?? tool!) as JsonObject;
  return { strict: declared['strict'], schema: declared['parameters'] as JsonObject };
}

function sentOutput({ body }: TranslatedRequest): Sent {
  const format = (body['response_format'] ?? (body['text'] as JsonObject)['format']) as JsonObject;
  const reported = (format['json_schema'] ?? format) as JsonObject;
  return { strict: reported['strict'], schema: reported['schema'] as JsonObject };
}

for (const [kind, requests, sentOf] of [
  ['tool', toolRequests, sentTool],
  ['output', outputRequests, sentOutput],
] as const) {
  for (const [client, request] of Object.entries(requests) as [Family, (schema: JsonObject) => JsonObject][]) {
    for (const upstream of ['chat', 'responses'] as const) {
      for (const stream of [false, true]) {
        const way = `${kind} of ${client} for ${upstream}${stream ? ', streamed' : ''}`;
        test(`${way}: a schema that leaves something open is not strict, and that is noted`, () => {
          for (const [name, schema] of Object.entries(unfitting)) {
            assert.equal(isTaken(schema), false, name);
            const sent = translated(client, request(schema), upstream, { stream });
            const { strict, schema: given } = sentOf(sent);
            assert.notEqual(strict, true, name);
            assert.deepEqual(given, schema, name);
            assert.ok(sent.dropped.includes(names[client][kind]), `${name}: ${sent.dropped.join(', ')}`);
          }
        });

        test(`${way}: a schema that the subset takes unchanged is strict`, () => {
          for (const [name, schema] of Object.entries(fitting)) {
            assert.equal(isTaken(schema), true, name);
            const sent = translated(client, request(schema), upstream, { stream });
            assert.deepEqual(sentOf(sent), { strict: true, schema }, name);
            assert.deepEqual(sent.dropped, [], name);
          }
        });
      }
    }
  }
}

test('a strict tool that takes nothing has a schema that strict mode takes', () => {
  for (const upstream of ['chat', 'responses'] as const) {
    for (const schema of [{ type: 'object', properties: {} }, { type: 'object' }]) {
      const sent = translated('messages', toolRequests.messages!(schema), upstream);
      const { strict, schema: given } = sentTool(sent);
      assert.equal(strict, true);
      assert.deepEqual(given, { type: 'object', properties: {}, required: [], additionalProperties: false });
    }
  }
});
