/** Requests and answers that one protocol reads differently from another: what was meant must arrive. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clients } from '../matrix/clients/index.ts';
import { type Ask, protocolNames } from '../matrix/scenario.ts';
import { worded } from '../translate/wording.ts';

const asked = (output: string): Ask => ({
  tools: [{ name: 'read', description: 'Reads.', schema: { type: 'object', properties: {} } }],
  turns: [
    { by: 'user', parts: [{ kind: 'text', text: 'Which schema?' }] },
    { by: 'assistant', calls: [{ id: 'call_1', name: 'read', input: {} }] },
    { by: 'tools', results: [{ callId: 'call_1', name: 'read', text: output }] },
  ],
});

test('a tool result with a $ref goes to generate-content upstreams as text', () => {
  const objects: [json: string, isText: boolean][] = [
    ['{"$ref":"#/$defs/A"}', true],
    ['{"a":[1,{"b":{"$defs":{}}}]}', true],
    ['{"\\u0024ref":"x"}', true],
    ['{"price":"$5","a$":{"b":["$ref"]}}', false],
  ];
  for (const client of protocolNames)
    for (const [json, isText] of objects) {
      const { body } = clients[client].word(asked(json), { model: 'model', isStream: false });
      const { contents } = worded(client, JSON.parse(body as string) as Record<string, unknown>, 'gemini').body as {
        contents: { parts: { functionResponse?: { response: Record<string, unknown> } }[] }[];
      };
      const { response } = contents.at(-1)!.parts[0]!.functionResponse!;
      if (isText) assert.deepEqual(JSON.parse(response['output'] as string), JSON.parse(json), client);
      else assert.deepEqual(response, JSON.parse(json), client);
    }
});
