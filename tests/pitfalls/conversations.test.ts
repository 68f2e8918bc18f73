/** What belongs to one conversation stays in it: reasoning, ids of calls, results, media. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, Play, ProtocolName } from '../matrix/scenario.ts';
import { nameOf, pairs, sent, turn, usage } from './relayed.ts';

const tools = [{ name: 'list_directory', description: 'Lists.', schema: { type: 'object', properties: {} } }];
const said = (text: string): ClientRequest['turns'][number] => ({ by: 'user', parts: [{ kind: 'text', text }] });
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
      const options = { isStream, traits: { reasoning_replay: true } };
      const topic = (name: string): ClientRequest => ({ system: `You help with ${name}.`, turns: [said(name)], tools });
      const id = 'functions.list_directory:1';
      // The client has no member for reasoning: it repeats the call alone.
      const proceed = async (name: string, callId: string) => {
        const turns: ClientRequest['turns'] = [
          said(name),
          { by: 'assistant', calls: [{ id: callId, name: 'list_directory', input: {} }] },
          { by: 'tools', results: [{ callId, name: 'list_directory', text: 'a.txt' }] },
        ];
        return (await turn(pair, { ...topic(name), turns }, done, options)).body;
      };
      const [one, other] = [`A ${client} ${isStream}`, `B ${client} ${isStream}`];
      const { seen } = await turn(pair, topic(one), toolPlay(id, 'PRIVATE-A'), options);
      const given = seen.calls[0]!.id;
      assert.doesNotMatch(await proceed(other, given), /PRIVATE/);
      await turn(pair, topic(other), toolPlay(id, 'PRIVATE-B'), options);
      assert.match(await proceed(one, given), /PRIVATE-A/);
      assert.match(await proceed(other, given), /PRIVATE-B/);
      assert.doesNotMatch(await proceed(one, given), /PRIVATE-B/);
    });
  }
}

const vendorIds = {
  'as Kimi numbers its calls': 'functions.Read:0',
  'of 65 characters': `call_${'x'.repeat(60)}`,
  'of 256 characters': `call_${'0123456789'.repeat(25)}x`,
  'with spaces and other letters': 'Aufruf № 1',
};

for (const pair of pairs) {
  for (const [kind, id] of Object.entries(vendorIds)) {
    test(`the vendor gets its own call id back: ${kind} (${nameOf(pair)})`, async () => {
      for (const isStream of [true, false]) {
        const request = { turns: [said('List.')], tools };
        const { seen } = await turn(pair, request, toolPlay(id), { isStream });
        const given = seen.calls[0]!.id;
        assert.match(given, pair.client === 'messages' ? /^[a-zA-Z0-9_-]+$/ : /^[\x21-\x7e]+$/);
        const turns = [
          said('List.'),
          { by: 'echo', native: seen.echo } as const,
          { by: 'tools', results: [{ callId: given, name: 'list_directory', text: 'a.txt' }] } as const,
        ];
        const { body } = await turn(pair, { ...request, turns }, done, { isStream });
        assert.equal(body.split(JSON.stringify(id)).length - 1, 2, body);
        // Another vendor need not take what this one takes.
        const { body: other } = await turn(pair, { ...request, turns }, done, { isStream, provider: 'other' });
        if (pair.vendor !== 'gemini') for (const one of idsIn(other)) assert.match(one, /^[\x21-\x7e]{1,64}$/);
      }
    });
  }
}

function idsIn(body: string): string[] {
  return [...body.matchAll(/"(?:id|call_id|tool_call_id|tool_use_id)":"((?:[^"\\]|\\.)*)"/g)].map(([, id]) => id!);
}

const open = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id === undefined ? {} : { id }) } });
const answer = (name: string, result: string, id?: string) => ({
  functionResponse: { name, response: { result }, ...(id === undefined ? {} : { id }) },
});
/** Calls, results by content, and the results in the order of the calls. */
const answered: Record<string, [object[], object[][], string[]]> = {
  'the one open call': [[open('list')], [[answer('call_1338', '1')]], ['1']],
  'several calls': [[open('a'), open('b')], [[answer('x', '1'), answer('y', '2')]], ['1', '2']],
  'several contents': [
    [open('a'), open('b')],
    [[answer('x', '1')], [answer('y', '2')]],
    ['1', '2'],
  ],
  'a call that no other result names': [[open('a'), open('b')], [[answer('x', '2'), answer('a', '1')]], ['1', '2']],
  'the same in two contents': [
    [open('a'), open('b')],
    [[answer('x', '2')], [answer('a', '1')]],
    ['1', '2'],
  ],
  'calls of one name': [[open('a'), open('a')], [[answer('x', '2'), answer('a', '1')]], ['1', '2']],
  'calls with ids': [[open('a', 'i1'), open('b', 'i2')], [[answer('i2', '2'), answer('i1', '1')]], ['1', '2']],
  'an unknown id': [[open('a', 'i1')], [[answer('x', '1', 'other')]], ['1']],
};

for (const vendor of ['chat', 'responses', 'messages'] as const) {
  for (const [kind, [calls, contents, results]] of Object.entries(answered)) {
    test(`a generate-content result under the id of its call, or any other name, answers the call in its place: ${kind} (${vendor} upstream)`, async () => {
      const { body, dropped } = await sent(
        { client: 'gemini', vendor },
        {
          contents: [
            { role: 'user', parts: [{ text: 'Go' }] },
            { role: 'model', parts: calls },
            ...contents.map((parts) => ({ role: 'user', parts })),
          ],
        },
      );
      const text = JSON.stringify(body);
      assert.doesNotMatch(text, /\(no result\)/);
      const found = [...text.matchAll(/"(?:content|output)":"(\d)"/g)].map(([, digit]) => digit);
      assert.deepEqual(found, results, text);
      assert.doesNotMatch(dropped ?? '', /functionResponse/);
    });
  }
}

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const called = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'see', arguments: '{}' } }],
};

for (const vendor of ['responses', 'messages', 'gemini'] as const) {
  test(`images of a chat message reach the model, the user’s and a tool’s (${vendor} upstream)`, async () => {
    const pair = { client: 'chat', vendor } as const;
    for (const image of [
      pixel,
      `data:image/png;base64,${pixel}`,
      { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } },
    ]) {
      const user = { role: 'user', content: 'What is it?', images: [image] };
      const result = { role: 'tool', tool_call_id: 'call_1', content: 'Seen.', images: [image] };
      for (const messages of [
        [user],
        [{ ...user, content: null }],
        [{ role: 'user', content: 'Look.' }, called, result],
      ]) {
        const { body, dropped } = await sent(pair, { messages });
        assert.equal(JSON.stringify(body).split(pixel).length - 1, 1, JSON.stringify(body));
        assert.doesNotMatch(dropped ?? '', /image/);
      }
    }
    for (const images of ['x', [7], ['not an image!']])
      await assert.rejects(
        sent(pair, { messages: [{ role: 'user', content: 'What?', images }] }),
        (error: { field?: string }) => /^messages\[0\]\.images/.test(error.field ?? ''),
      );
  });
}
