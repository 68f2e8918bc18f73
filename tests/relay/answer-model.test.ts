/** Relayed answers under the name that the client has asked for: the model's name differs from the vendor's answer, and no other byte. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { families, type Recording, recordings } from '../helpers/recordings.ts';
import { errorsIn200, reshaped } from '../helpers/relay-rules.ts';
import { requestFor } from '../helpers/replay.ts';
import { type Script, seededCuts } from '../helpers/vendor.ts';
import { type Stage, startStage } from './stage.ts';

let stage: Stage;
before(async () => {
  stage = await startStage({ stream_usage: false }, { answer_model: 'asked' });
});
after(() => stage.stop());

/** The request of the recording for the model `alias`, and what the client gets of this answer. */
async function played(recording: Recording, script: Partial<Script> = {}): Promise<string> {
  const { path, body } = requestFor(recording);
  const requested = JSON.parse(body) as { model?: unknown };
  const renamed = requested.model === undefined ? body : JSON.stringify({ ...requested, model: 'alias' });
  const address = path.replace(/\/models\/[^:?]+:/, '/models/alias:');
  const reply = await stage.send(address, renamed, {
    headers: headersOf(recording),
    body: recording.response,
    ...script,
  });
  assert.equal(reply.status, 200, reply.body.toString());
  return reply.body.toString();
}

const headersOf = ({ contentType }: Recording): Record<string, string> =>
  contentType === undefined ? {} : { 'content-type': contentType };

/** What vendors call the model in an answer. */
function namesIn(text: string): Set<string> {
  return new Set([...text.matchAll(/"(?:model|modelVersion)"\s*:\s*"((?:[^"\\]|\\.)*)"/g)].map(([, name]) => name!));
}

/** Streams that are changed for other reasons, errors, and counts, which are no answers. */
const isPlain = ({ name, status, path }: Recording) =>
  status === 200 && !errorsIn200.has(name) && !(name in reshaped) && !name.includes('err') && !path.includes('count');

for (const family of families)
  for (const isStream of [false, true])
    test(`${family} answers name the model as the client did, ${isStream ? 'streamed' : 'whole'}`, async () => {
      let seen = 0;
      for (const recording of recordings(family).filter((one) => one.isStream === isStream && isPlain(one))) {
        const vendors = recording.response.toString();
        const [name, ...others] = namesIn(vendors);
        if (name === undefined || others.length > 0 || seen >= 20) continue;
        const text = await played(recording);
        assert.equal(text.replaceAll('"alias"', `"${name}"`), vendors, recording.name);
        assert.deepEqual([...namesIn(text)], ['alias'], recording.name);
        if (isStream) {
          const cuts = seededCuts(recording.response.length, 10, seen);
          assert.equal(await played(recording, { cuts }), text, recording.name);
        }
        seen++;
      }
      assert.ok(seen > 2, String(seen));
    });

const chat = {
  path: '/v1/chat/completions',
  body: JSON.stringify({ model: 'alias', messages: [{ role: 'user', content: 'Hi' }] }),
};
const message = { role: 'assistant', content: 'The "model":"x" of {"model":"y"}.' };
const whole = (model: string) =>
  `{"choices":[{"index":0,"message":${JSON.stringify(message)},"finish_reason":"stop"}],  "model" :  ${model},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"model":"z"}}`;

test('a name that is no text, and names elsewhere in an answer, are unchanged', async () => {
  const headers = { 'content-type': 'application/json' };
  for (const [given, seen] of [
    ['"real\\u002fmodel"', '"alias"'],
    ['null', 'null'],
    ['{"model":"x"}', '{"model":"x"}'],
  ] as const) {
    const reply = await stage.send(chat.path, chat.body, { headers, body: whole(given) });
    assert.equal(reply.body.toString(), whole(seen));
  }
});

test('a frame whose data has several lines names the model as the client did', async () => {
  const chunk = (model: string) => [
    `{"id":"1","object":"chat.completion.chunk","created":1,"model":"${model}",`,
    '"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}',
  ];
  const body = `: hello\n\ndata: ${chunk('real').join('\ndata: ')}\n\ndata: [DONE]\n\n`;
  const requested = JSON.stringify({ ...JSON.parse(chat.body), stream: true });
  const reply = await stage.send(chat.path, requested, { headers: { 'content-type': 'text/event-stream' }, body });
  assert.equal(reply.body.toString(), `: hello\n\ndata: ${chunk('alias').join('')}\n\ndata: [DONE]\n\n`);
});

test('a generate-content answer in the form of the specification has the name too', async () => {
  const body = JSON.stringify({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
    modelVersion: 'real-001',
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  });
  const requested = JSON.stringify({ stream: false, contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] });
  const headers = { 'content-type': 'application/json' };
  const reply = await stage.send('/v1beta/models/alias:generateContent', requested, { headers, body });
  assert.equal(JSON.parse(reply.body.toString()).model_version, 'alias');
});
