/** The messages codec on requests of clients: what they send is understood. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../core/json/json.ts';
import { recordings } from '../../../helpers/recordings.ts';
import { decoded } from './messages-harness.ts';
import { body } from './messages-samples.ts';

/** As the coding client sends it on its second turn; the schemas are shortened. */
const codingBody: JsonObject = {
  model: 'claude-opus-5-5',
  max_tokens: 128_000,
  stream: true,
  thinking: { type: 'adaptive', display: 'omitted' },
  output_config: { effort: 'medium' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  metadata: { user_id: '{"device_id":"d","account_uuid":"a","session_id":"s"}' },
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.329; cc_entrypoint=cli;' },
    { type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'Rules.', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ],
  tools: [
    {
      name: 'Bash',
      description: 'Runs',
      input_schema: { type: 'object', properties: {} },
      eager_input_streaming: true,
    },
    { name: 'ToolSearch', description: 'Finds', input_schema: { type: 'object', properties: {} } },
    { name: 'DeferredToolPlaceholder', input_schema: { type: 'object' }, defer_loading: true },
    { name: 'Later', description: 'Later', input_schema: { type: 'object', properties: {} }, defer_loading: true },
  ],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Do it' }] },
    { role: 'system', content: 'Context.' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature: 'EoQD' },
        { type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: { query: 'x' }, caller: { type: 'direct' } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [{ type: 'tool_reference', tool_name: 'Later' }],
          is_error: false,
          cache_control: { type: 'ephemeral' },
        },
      ],
    },
    {
      role: 'system',
      content: [{ type: 'text', text: '<total_tokens>1</total_tokens>' }],
      output_config: { effort: 'high' },
    },
  ],
};

test('pitfall 107: the line for the accounting of the vendor is no part of the prompt', () => {
  assert.deepEqual(decoded(codingBody).prompt.turns[0]?.parts, [
    { kind: 'text', text: 'You are an agent.', cache: 'short' },
    { kind: 'text', text: 'Rules.', cache: 'long' },
  ]);
  const { prompt } = decoded(body({ system: 'x-anthropic-billing-header: a=b;\nYou are.' }));
  assert.deepEqual(prompt.turns[0]?.parts, [{ kind: 'text', text: 'You are.' }]);
});

for (const recording of recordings('messages').filter((one) => one.request !== undefined && one.status === 200)) {
  test(`the request of ${recording.name} is read without loss`, () => {
    const json = JSON.parse(recording.request!.toString()) as JsonObject;
    const { prompt, dropped } = decoded(json);
    // That fetched pages shall be cited: no other vendor's tool can be asked for it.
    assert.deepEqual(dropped, recording.name.includes('web-fetch-citations') ? ['web_fetch_20250910.citations'] : []);
    assert.equal(prompt.turns.length, (json['messages'] as unknown[]).length + (json['system'] === undefined ? 0 : 1));
    assert.equal(prompt.tools.length, ((json['tools'] as unknown[]) ?? []).length);
  });
}
