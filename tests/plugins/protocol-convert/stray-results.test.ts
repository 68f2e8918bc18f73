/** Results of tools that nothing called: other protocols have no place for them, so they are named as left out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part, Turn } from '../../../plugins/common/canonical/prompt.ts';
import { hasStrayResult } from '../../../plugins/common/encoding/history.ts';
import type { ProtocolName } from '../../matrix/scenario.ts';
import { nameOf, pairs, sent } from '../../pitfalls/relayed.ts';

const call = { kind: 'tool-call', id: 'a', name: 'f', input: '{}' } as const;
const result = { kind: 'tool-result', callId: 'a', parts: [] } as const;

test('a result is a stray one unless its call comes before it', () => {
  const turn = (...parts: Part[]): Turn => ({ role: 'user', parts });
  assert.equal(hasStrayResult([turn(call), turn(result), turn(result)]), false);
  assert.equal(hasStrayResult([turn(result), turn(call)]), true);
  assert.equal(hasStrayResult([turn(call), turn({ ...result, callId: 'b' })]), true);
  assert.equal(hasStrayResult([]), false);
});

const stray: Record<ProtocolName, { body: Record<string, unknown>; name: string }> = {
  chat: {
    body: {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'tool', tool_call_id: 'a', content: 'x' },
      ],
    },
    name: 'messages.tool_call_id',
  },
  responses: {
    body: {
      input: [
        { type: 'function_call_output', call_id: 'a', output: 'x' },
        { role: 'assistant', content: 'Hello' },
        { role: 'user', content: 'Hi' },
      ],
    },
    name: 'function_call_output',
  },
  messages: {
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: 'x' },
            { type: 'text', text: 'Hi' },
          ],
        },
      ],
    },
    name: 'messages.content.tool_result',
  },
  gemini: {
    body: { contents: [{ role: 'user', parts: [{ functionResponse: { name: 'f', response: {} } }, { text: 'Hi' }] }] },
    name: 'contents[].parts[].functionResponse',
  },
};

for (const pair of pairs) {
  test(`a stray result is named as left out (${nameOf(pair)})`, async () => {
    const { body, name } = stray[pair.client];
    const { dropped } = await sent(pair, body);
    assert.ok(dropped?.split(', ').includes(name), String(dropped));
  });
}

const outputs = {
  function_call_output: { output: 'x' },
  custom_tool_call_output: { output: 'x' },
  local_shell_call_output: { output: 'x' },
  shell_call_output: { output: [] },
  apply_patch_call_output: { output: 'x' },
  computer_call_output: { output: { type: 'computer_screenshot', image_url: 'data:image/png;base64,iVBORw0KGgo=' } },
  tool_search_output: { tools: [] },
};

for (const pair of pairs.filter(({ client }) => client === 'responses')) {
  test(`a new tool output without its call is refused by its field (${nameOf(pair)})`, async () => {
    for (const [type, members] of Object.entries(outputs)) {
      const input = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
        { type, call_id: 'unknown', ...members },
      ];
      await assert.rejects(sent(pair, { input }), { kind: 'invalid_request', field: 'input[2].call_id' }, type);
    }
  });
}
