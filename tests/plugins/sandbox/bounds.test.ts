/** Sampling settings outside of the originals' bounds, which the sandbox refuses as they do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '../../../plugins/sandbox/fault.ts';
import type { Call } from '../../../plugins/sandbox/protocol.ts';
import { decodeChat } from '../../../plugins/sandbox/protocols/chat-request.ts';
import { decodeGemini } from '../../../plugins/sandbox/protocols/gemini-request.ts';
import { decodeMessages } from '../../../plugins/sandbox/protocols/messages-request.ts';
import { decodeResponses } from '../../../plugins/sandbox/protocols/responses-request.ts';

const call = { operation: 'generate', model: 'm', headers: {} } as unknown as Call;

test('sampling beyond the bounds is refused, and the bounds themselves are accepted', () => {
  const chat = (member: object) => decodeChat({ model: 'm', messages: [{ role: 'user', content: 'x' }], ...member });
  for (const member of [{ temperature: 2.1 }, { top_p: 1.1 }, { presence_penalty: 2.1 }, { frequency_penalty: -2.1 }])
    assert.throws(() => chat(member), Fault, JSON.stringify(member));
  chat({ temperature: 2, top_p: 1, presence_penalty: -2, frequency_penalty: 2 });
  const gemini = (generationConfig: object) =>
    decodeGemini({ contents: [{ parts: [{ text: 'x' }] }], generationConfig }, call);
  assert.throws(() => gemini({ temperature: 2.1 }), Fault);
  assert.throws(() => gemini({ topP: 1.1 }), Fault);
  gemini({ temperature: 2, topP: 1 });
  const responses = (member: object) => decodeResponses({ model: 'm', input: 'x', ...member }, call);
  for (const member of [{ temperature: 2.1 }, { temperature: -0.1 }, { top_p: 1.1 }, { top_p: -0.1 }])
    assert.throws(() => responses(member), Fault, JSON.stringify(member));
  responses({ temperature: 2, top_p: 1 });
  responses({ temperature: 0, top_p: 0 });
  const messages = (member: object) =>
    decodeMessages(
      { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }], ...member },
      {
        ...call,
        operation: 'answer',
      },
    );
  for (const member of [{ temperature: 1.1 }, { temperature: -0.1 }, { top_p: 1.1 }, { top_p: -0.1 }])
    assert.throws(() => messages(member), Fault, JSON.stringify(member));
  messages({ temperature: 1, top_p: 1 });
  messages({ temperature: 0, top_p: 0 });
});
