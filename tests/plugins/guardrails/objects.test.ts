/** Calls and results as objects, in the protocols of messages and gemini: values, names of members and numbers are texts of their own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../../plugins/common/author/testing.ts';

let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  vendor.play(chatAnswer('Done.'));
  const model = (target: string) => ({ owned_by: 'x', targets: [target], price: 'free' });
  gateway = await startGateway({
    plugins: ['providers', 'models', 'guardrails', 'prompts', 'route', 'protocol-convert'],
    providers: {
      messages: { keys: 'k', speaks: { messages: vendor.origin } },
      gemini: { keys: 'k', speaks: { gemini: `${vendor.origin}/v1beta` } },
    },
    models: { messages: model('messages'), gemini: model('gemini') },
    guardrails: {
      checks: { pii: { type: 'patterns', find: ['email', 'card'], on: ['prompt'], do: 'mask' } },
      policies: { base: ['pii'] },
      apply: [{ policy: 'base' }],
    },
  });
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
});

const data = {
  to: 'bob@example.com',
  subject: 'Hello',
  'ada@example.com': [1, 4_111_111_111_111_111, 12.5],
  deep: [{ name: 'eve@example.com', id: 'x', 'role of bob@example.com': true }],
};
const masked = {
  to: '[EMAIL-1]',
  subject: 'Hello',
  '[EMAIL-2]': [1, '[CARD-1]', 12.5],
  deep: [{ name: '[EMAIL-3]', id: 'x', 'role of [EMAIL-1]': true }],
};

async function sent(path: string, body: object) {
  await (await gateway.post(path, body)).text();
  return JSON.parse(vendor.requests.at(-1)!.body.toString());
}

test('the input of a call is masked string by string in the protocol of messages', async () => {
  const call = { type: 'tool_use', id: 't', name: 'mail', input: data };
  const { messages } = await sent('/v1/messages', {
    ...{ model: 'messages', max_tokens: 10 },
    messages: [
      { role: 'user', content: 'Go on.' },
      { role: 'assistant', content: [call] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'Sent.' }] },
    ],
  });
  assert.deepEqual(messages[1].content, [{ ...call, input: masked }]);
});

test('arguments and results of functions are masked string by string in the protocol of gemini', async () => {
  const { contents } = await sent('/v1beta/models/gemini:generateContent', {
    contents: [
      { role: 'user', parts: [{ text: 'Go on.' }] },
      { role: 'model', parts: [{ functionCall: { name: 'mail', args: data } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'mail', response: data } }] },
    ],
  });
  assert.deepEqual(contents[1].parts[0].functionCall.args, masked);
  assert.deepEqual(contents[2].parts[0].functionResponse.response, masked);
});
