/** Whatever JSON comes: upstream chunks become legal events, client requests are read or refused by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import { fc } from '../../../helpers/properties.ts';
import { collected } from '../canonical/collect-events.ts';
import { decode, encode, encodeStream, replyContext, streamEvents } from './chat-harness.ts';

const odd = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('', null, 'a', 0, [], {}));
const some = <T>(value: fc.Arbitrary<T>) => fc.oneof({ weight: 1, arbitrary: odd }, { weight: 6, arbitrary: value });
const body = some(
  fc.record({ name: some(fc.constantFrom('f', 'g')), arguments: odd, input: odd }, { requiredKeys: [] }),
);
const call = some(
  fc.record(
    { index: some(fc.nat(2)), id: some(fc.constantFrom('a', 'b')), function: body, custom: body, extra_content: odd },
    { requiredKeys: [] },
  ),
);
const parts = some(
  fc.array(
    some(
      fc.record({ type: fc.constantFrom('text', 'thinking', 'image_url'), text: odd, thinking: odd, image_url: odd }),
    ),
  ),
);
const delta = some(
  fc.record(
    {
      content: parts,
      reasoning: odd,
      reasoning_content: odd,
      reasoning_details: some(fc.array(fc.record({ type: odd, text: odd, signature: odd, data: odd }))),
      refusal: odd,
      tool_calls: some(fc.array(call, { maxLength: 3 })),
      function_call: body,
      audio: some(fc.record({ data: odd, transcript: odd })),
      images: parts,
      annotations: some(
        fc.array(some(fc.record({ url_citation: some(fc.record({ url: odd, start_index: odd, end_index: odd })) }))),
      ),
      extra_content: odd,
    },
    { requiredKeys: [] },
  ),
);
const choice = some(
  fc.record({
    index: some(fc.nat(2)),
    delta,
    message: delta,
    logprobs: odd,
    finish_reason: some(fc.constantFrom('stop', 'length', 'tool_calls')),
  }),
);
const chunk = fc.record({ id: odd, created: odd, choices: some(fc.array(choice, { maxLength: 3 })), citations: odd });

test('any chunks at all become legal events, and those become chunks for a client', () => {
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 6 }), (chunks) => {
      const events = streamEvents(chunks);
      collected(events);
      const out = encodeStream(events, replyContext());
      for (const frame of out.trimEnd().split('\n\n'))
        if (frame !== 'data: [DONE]') JSON.parse(frame.slice('data: '.length));
    }),
    { numRuns: 500 },
  );
});

/** Mostly null: one wrong member is enough for a refusal. */
const rarely = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 30, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value });
const message = fc.record(
  {
    role: some(fc.constantFrom('user', 'assistant', 'system', 'tool', 'function')),
    content: parts,
    tool_calls: some(fc.array(call, { maxLength: 2 })),
    tool_call_id: some(fc.constantFrom('a', 'b')),
    function_call: body,
    reasoning_details: odd,
    extra_content: odd,
    name: rarely(odd),
  },
  { requiredKeys: ['role'] },
);
const settings = [
  'temperature',
  'stop',
  'n',
  'tools',
  'functions',
  'tool_choice',
  'response_format',
  'reasoning',
  'thinking',
  'modalities',
  'audio',
  'logit_bias',
  'web_search_options',
  'user',
];
const request = fc.record(
  {
    messages: some(fc.array(message, { minLength: 1, maxLength: 3 })),
    ...Object.fromEntries(settings.map((name) => [name, rarely(odd)])),
  },
  { requiredKeys: [] },
);

test('any request at all is decoded and encoded again, or refused by the name of a field', () => {
  let read = 0;
  fc.assert(
    fc.property(request, (json) => {
      try {
        encode(decode(json as JsonObject).prompt);
        read++;
      } catch (error) {
        assert.ok(error instanceof GatewayError && error.field !== undefined, String(error));
      }
    }),
    { numRuns: 1500 },
  );
  assert.ok(read > 50, `${read} were read`);
});
