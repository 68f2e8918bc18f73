/** What belongs to one conversation stays in it: reasoning, ids of calls, results, media. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ask, Play, ProtocolName } from '../matrix/scenario.ts';
import { turn, usage } from './telling.ts';

const tools = [{ name: 'list_directory', description: 'Lists.', schema: { type: 'object', properties: {} } }];
const said = (text: string): Ask['turns'][number] => ({ by: 'user', parts: [{ kind: 'text', text }] });
const toolPlay = (id: string, reasoning?: string): Play => ({
  ...(reasoning === undefined ? {} : { reasoning: { text: reasoning, signature: '' } }),
  calls: [{ id, name: 'list_directory', input: {} }],
  meaning: 'tool-calls',
  usage,
});
const done: Play = { text: 'Done.', meaning: 'stop', usage };

for (const client of ['responses', 'messages', 'gemini'] satisfies ProtocolName[]) {
  for (const isStream of [true, false]) {
    test(`reasoning of another conversation with the same call id is not sent (${client} client, ${isStream ? 'streamed' : 'whole'})`, async () => {
      const pair = { client, vendor: 'chat' } as const;
      const telling = { isStream, traits: { reasoning_replay: true } };
      const topic = (name: string): Ask => ({ system: `You help with ${name}.`, turns: [said(name)], tools });
      const id = 'functions.list_directory:1';
      // The client has no member for reasoning: it repeats the call alone.
      const goOn = async (name: string, callId: string) => {
        const turns: Ask['turns'] = [
          said(name),
          { by: 'assistant', calls: [{ id: callId, name: 'list_directory', input: {} }] },
          { by: 'tools', results: [{ callId, name: 'list_directory', text: 'a.txt' }] },
        ];
        return (await turn(pair, { ...topic(name), turns }, done, telling)).body;
      };
      const [one, other] = [`A ${client} ${isStream}`, `B ${client} ${isStream}`];
      const { seen } = await turn(pair, topic(one), toolPlay(id, 'PRIVATE-A'), telling);
      const given = seen.calls[0]!.id;
      assert.doesNotMatch(await goOn(other, given), /PRIVATE/);
      await turn(pair, topic(other), toolPlay(id, 'PRIVATE-B'), telling);
      assert.match(await goOn(one, given), /PRIVATE-A/);
      assert.match(await goOn(other, given), /PRIVATE-B/);
      assert.doesNotMatch(await goOn(one, given), /PRIVATE-B/);
    });
  }
}
