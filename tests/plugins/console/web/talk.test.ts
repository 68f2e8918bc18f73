/** The playground's talk: events however they are cut, turns as they grow, the request as curl. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  bodyOf,
  curlOf,
  eventsOf,
  grown,
  noTurn,
  TalkError,
} from '../../../../plugins/console/web/src/pages/client/talk.ts';

function streamOf(bytes: Uint8Array, cuts: readonly number[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      let from = 0;
      for (const cut of [...cuts].sort((left, right) => left - right)) {
        const to = Math.min(bytes.length, Math.max(from, cut));
        if (to > from) controller.enqueue(bytes.slice(from, to));
        from = to;
      }
      controller.enqueue(bytes.slice(from));
      controller.close();
    },
  });
}

test('events are the same wherever the network cuts them', async () => {
  const data = ['{"a":"é✓"}', '{"b":2}', '[DONE]'];
  const bytes = new TextEncoder().encode(`: hello\r\n\r\n${data.map((line) => `data: ${line}\n\n`).join('')}`);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: bytes.length })), async (cuts) => {
      const seen: string[] = [];
      for await (const event of eventsOf(streamOf(bytes, cuts))) seen.push(event);
      assert.deepEqual(seen, data);
    }),
    { numRuns: 50 },
  );
});

test('a turn grows by text, reasoning and usage, and ends with the stream’s error', () => {
  let turn = grown(noTurn, '{"choices":[{"delta":{"reasoning_content":"Hm."}}]}');
  turn = grown(turn, '{"choices":[{"delta":{"content":"Hel"}}]}');
  turn = grown(turn, '{"choices":[{"delta":{"content":"lo"}}]}');
  turn = grown(turn, '{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}');
  assert.deepEqual([turn.text, turn.reasoning, turn.tokensIn, turn.tokensOut], ['Hello', 'Hm.', 12, 3]);
  assert.throws(() => grown(turn, '{"error":{"message":"gone"}}'), new TalkError(0, 'gone'));
});

test('the request as curl survives a shell, whatever is said', () => {
  const messages = [{ role: 'user', content: 'it\'s "$HOME" `date` \\ é\n!' }] as const;
  const command = curlOf('http://gate.example', 'KEY', 'm', messages).replace(/^curl -N/, "printf '%s\\0'");
  const words = execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' }).split('\0').slice(0, -1);
  assert.equal(words[0], 'http://gate.example/v1/chat/completions');
  assert.deepEqual(JSON.parse(words.at(-1)!), JSON.parse(JSON.stringify(bodyOf('m', messages))));
});
