/** Speech and transcriptions: relayed byte for byte, metered by characters, tokens or seconds, broken answers, bad forms. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { requestQueries } from '../../../plugins/common/domain/admin/requests.ts';
import { mp3Silence, wavTone } from '../../../plugins/sandbox/endpoints/tones.ts';
import { fc } from '../../helpers/properties.ts';
import { until } from '../../helpers/until.ts';
import { openTestbed, type Testbed } from './setup.ts';

let testbed: Testbed;
before(async () => {
  testbed = await openTestbed(
    `
  voice: { owned_by: x, kind: speech, targets: [first/their-voice, second/their-voice], price: { character: 15 } }
  tokened: { owned_by: x, kind: speech, targets: [first/their-tokened], price: { input: 0.6, output_audio: 12 } }
  ears: { owned_by: x, kind: transcription, targets: [first/their-longer-ears-name, second/b], price: { audio: 0.36 } }
  counted: { owned_by: x, kind: transcription, targets: [first/counted], price: { input: 2.5, input_audio: 6, output: 10 } }
`,
    ['openai-speech', 'openai-transcriptions'],
    'endpoints: { file: 200KB, characters: 100 }',
  );
});
after(() => testbed.stop());

const json = { 'content-type': 'application/json' };
const events = { 'content-type': 'text/event-stream' };
const speak = (more: object = {}, options?: Parameters<Testbed['post']>[2]) =>
  testbed.post('/v1/audio/speech', { model: 'voice', input: 'Grüße 👋', voice: 'alloy', ...more }, options);

/** The newest charge after this one more call. */
async function charged(call: () => Promise<unknown>) {
  const [balance, count] = [await testbed.balance(), (await testbed.charges(0)).length];
  await call();
  const [charge] = await testbed.charges(count + 1);
  return { ...charge!.detail, paid: balance - (await testbed.balance()) };
}

test('audio passes byte for byte and is charged exactly by the characters of the text', async () => {
  const audio = mp3Silence(2);
  testbed.first.play({ headers: { 'content-type': 'audio/mpeg' }, body: audio, cuts: [1, 500, 2_000] });
  const sent = testbed.first.requests.length;
  const charge = await charged(async () => {
    const got = await speak({ instructions: 'slow', speed: 1 });
    assert.deepEqual([got.status, got.headers.get('content-type')], [200, 'audio/mpeg']);
    assert.ok(got.bytes.equals(audio));
  });
  // Seven characters: an emoji is one.
  assert.deepEqual([charge.usage, charge.estimated, charge.paid], [{ character: 7 }, false, 7n * 15_000n]);
  const body = '{"model":"their-voice","input":"Grüße 👋","voice":"alloy","instructions":"slow","speed":1}';
  assert.equal(testbed.first.requests[sent]!.body.toString(), body);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 100 }), async (length) => {
      const one = await charged(() => speak({ input: 'x'.repeat(length) }));
      assert.deepEqual([one.usage, one.paid], [{ character: length }, BigInt(length) * 15_000n]);
    }),
    { numRuns: 8 },
  );
});

test('audio of a model with token prices is estimated by its length, in each format that has one', async () => {
  for (const [format, type, body] of [
    ['mp3', 'audio/mpeg', mp3Silence(10)],
    ['wav', 'audio/wav', wavTone(10)],
    ['pcm', 'audio/pcm', wavTone(10).subarray(44)],
  ] as const) {
    testbed.first.play({ headers: { 'content-type': type }, body, cuts: [3, 45, 9_001, 100_000] });
    const charge = await charged(() => speak({ model: 'tokened', input: 'abc', response_format: format }));
    assert.equal(charge.estimated, true);
    const { output_audio: tokens = 0, input } = charge.usage;
    assert.ok(input === 1 && Math.abs(tokens - 210) <= 1, `${format}: ${tokens}`);
  }
});

const delta = 'event: speech.audio.delta\ndata: {"type":"speech.audio.delta","audio":"AAAA"}\n\n';
const done = (input: number, output: number) =>
  `data: ${JSON.stringify({ type: 'speech.audio.done', usage: { input_tokens: input, output_tokens: output, total_tokens: input + output } })}\n\n`;
const asEvents = { model: 'tokened', stream_format: 'sse' };

test('events pass unchanged, and any usage of the last one is charged', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 8_000 }), fc.nat(250), fc.nat(200), async (input, output, cut) => {
      const body = delta + done(input, output);
      testbed.first.play({ headers: events, body, cuts: [Math.min(cut, body.length - 1)] });
      const charge = await charged(async () => assert.equal((await speak(asEvents)).text, body));
      assert.deepEqual([charge.usage, charge.estimated], [{ input, output_audio: output }, false]);
      assert.equal(charge.paid, BigInt(input) * 600n + BigInt(output) * 12_000n);
    }),
    { numRuns: 10 },
  );
});

test("a stream without its last event ends with the protocol's error, and is charged by the received audio", async () => {
  for (const script of [{ body: delta }, { body: delta + done(1, 1).slice(0, 40), dieAfter: 120 }]) {
    testbed.first.play({ headers: events, ...script });
    const charge = await charged(async () => {
      const { text } = await speak(asEvents);
      assert.match(
        text,
        /\n\nevent: error\ndata: \{"type":"error","error":\{"message":"The model broke off its answer."/,
      );
    });
    assert.equal(charge.estimated, true);
  }
  testbed.first.play({ headers: { 'content-type': 'audio/mpeg' }, body: mp3Silence(5), dieAfter: 3_000 });
  await charged(() => assert.rejects(speak(), /terminated|aborted/));
});

test('a client that disconnects stops the vendor, and pays for the text spoken so far', async () => {
  testbed.first.play({ headers: { 'content-type': 'audio/mpeg' }, body: mp3Silence(1), hang: true });
  const sent = testbed.first.requests.length;
  const leaving = new AbortController();
  const charge = await charged(async () => {
    const call = speak({}, { signal: leaving.signal });
    setTimeout(() => leaving.abort(), 150);
    await assert.rejects(call);
    await testbed.first.requests[sent]!.closed;
  });
  assert.deepEqual(charge.usage, { character: 7 });
});

function form(fields: Record<string, string | File>): FormData {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.append(name, value);
  return made;
}

const recording = (seconds: number) => new File([new Uint8Array(wavTone(seconds))], 'talk.wav', { type: 'audio/wav' });
const transcribe = (fields: Record<string, string | File>, options?: Parameters<Testbed['post']>[2]) =>
  testbed.post('/v1/audio/transcriptions', form({ file: recording(2.2), model: 'ears', ...fields }), options);

test('a form is relayed byte for byte except for the model, and reported seconds are charged, rounded up', async () => {
  const boundary = 'XboundaryX';
  const body = (name: string) =>
    Buffer.concat([
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n`,
      ),
      wavTone(1),
      Buffer.from(
        `\r\n--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\n${name}\r\n--${boundary}\r\n`,
      ),
      Buffer.from(
        `content-disposition: form-data; name="timestamp_granularities[]"\r\n\r\nword\r\n--${boundary}--\r\n`,
      ),
    ]);
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
  const answer = '{"text":"hello","usage":{"type":"duration","seconds":3}}';
  testbed.first.play({ headers: json, body: answer });
  const sent = testbed.first.requests.length;
  const charge = await charged(async () => {
    const got = await testbed.post('/v1/audio/transcriptions', body('ears'), { headers });
    assert.deepEqual([got.status, got.text], [200, answer]);
  });
  const request = testbed.first.requests[sent]!;
  assert.ok(request.body.equals(body('their-longer-ears-name')));
  assert.equal(request.headers['content-type'], headers['content-type']);
  assert.equal(Number(request.headers['content-length']), request.body.length);
  assert.deepEqual([charge.usage, charge.estimated, charge.paid], [{ audio: 3 }, false, 300_000n]);
  testbed.first.play({ headers: json, body: '{"text":"hello","duration":8.4700002670288}' });
  const verbose = await charged(() => transcribe({ response_format: 'verbose_json' }));
  assert.deepEqual([verbose.usage, verbose.estimated], [{ audio: 9 }, false]);
});

test("without counters the length in the file's header is charged, and marked", async () => {
  testbed.first.play({ headers: { 'content-type': 'text/plain' }, body: 'hello\n' });
  const charge = await charged(() => transcribe({ response_format: 'text' }));
  assert.deepEqual([charge.usage.audio, charge.estimated, charge.paid], [3, true, 300_000n]);
  testbed.first.play({
    headers: json,
    body: '{"text":"x","usage":{"type":"tokens","input_tokens":30,"output_tokens":2}}',
  });
  const other = await charged(() => transcribe({}));
  assert.deepEqual([other.usage, other.estimated], [{ input: 30, output: 2, audio: 3 }, true]);
});

test("an error event within a stream of speech or of a transcription reaches the client masked, and keeps the vendor's words for operators", async () => {
  const event = JSON.stringify({ type: 'error', error: { message: 'No voice is left at key-of-first' } });
  const queries = testbed.gateway.gateway.find(requestQueries)!;
  for (const [begun, call] of [
    [delta, () => speak(asEvents)],
    ['data: {"type":"transcript.text.delta","delta":"hi"}\n\n', () => transcribe({ model: 'counted', stream: 'true' })],
  ] as const) {
    const whole = `${begun}event: error\ndata: ${event}\n\n`;
    const seen = whole.replace('key-of-first', '***');
    // Also where the key comes in two pieces, and where the stream ends without the blank line.
    for (const [body, expected] of [
      [whole, seen],
      [whole.trimEnd(), seen.trimEnd()],
    ] as const) {
      testbed.first.play({ headers: events, body, cuts: [body.indexOf('key-of-first') + 5] });
      assert.equal((await call()).text, expected);
    }
    testbed.first.play({ headers: events, body: whole });
    let id = '';
    await charged(async () => {
      id = (await call()).headers.get('x-request-id')!;
    });
    await until('its row is written', async () => (await queries.find(id, undefined)) !== undefined);
    const row = (await queries.find(id, undefined))!;
    assert.deepEqual(row.vendorWords, [{ attempt: 1, message: 'No voice is left at ***', requestId: null }]);
  }
});

test('any reported tokens are charged exactly, whole and at the end of a stream', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4_000 }),
      fc.nat(4_000),
      fc.nat(250),
      fc.boolean(),
      async (audio, text, output, stream) => {
        const usage = {
          type: 'tokens',
          input_tokens: audio + text,
          input_token_details: { text_tokens: text, audio_tokens: audio },
          output_tokens: output,
        };
        const last = JSON.stringify({ type: 'transcript.text.done', text: 'hi', usage });
        const body = stream ? `data: {"type":"transcript.text.delta","delta":"hi"}\n\ndata: ${last}\n\n` : last;
        testbed.first.play({ headers: stream ? events : json, body });
        const charge = await charged(async () => {
          const got = await transcribe({ model: 'counted', ...(stream ? { stream: 'true' } : {}) });
          assert.equal(got.text, body);
        });
        assert.deepEqual([charge.usage, charge.estimated], [{ input: text, input_audio: audio, output }, false]);
        assert.equal(charge.paid, BigInt(text) * 2_500n + BigInt(audio) * 6_000n + BigInt(output) * 10_000n);
      },
    ),
    { numRuns: 12 },
  );
});

test('a form that a busy vendor refuses goes whole to the next one', async () => {
  testbed.first.play({ status: 503, headers: json, body: '{}' });
  testbed.second.play({ headers: json, body: '{"text":"hi","usage":{"type":"duration","seconds":1}}' });
  const count = testbed.second.requests.length;
  const got = await transcribe({});
  assert.equal(got.status, 200);
  const body = testbed.second.requests[count]!.body;
  assert.ok(body.includes(wavTone(2.2)) && body.includes('\r\n\r\nb\r\n'));
});

test('bad requests are refused with the field, before anything is sent', async () => {
  const [first, second] = [testbed.first.requests.length, testbed.second.requests.length];
  const speechCases: readonly [object, string][] = [
    [{ model: undefined }, 'model'],
    [{ input: undefined }, 'input'],
    [{ input: 7 }, 'input'],
    [{ input: '' }, 'input'],
    [{ input: 'x'.repeat(101) }, 'input'],
    [{ voice: undefined }, 'voice'],
    [{ voice: 3 }, 'voice'],
    [{ voice: { id: 'voice_of_another_customer' } }, 'voice.id'],
    [{ voice: {} }, 'voice.id'],
    [{ models: ['their-voice', 'voice'] }, 'models[1]'],
    [{ provider: { sort: 'price' } }, 'provider'],
    [{ response_format: 'ogg' }, 'response_format'],
    [{ stream_format: 'xml' }, 'stream_format'],
    [{ speed: 9 }, 'speed'],
    [{ model: 'ears' }, 'model'],
  ];
  for (const [body, field] of speechCases) {
    const got = await speak(body);
    const seen = [got.status, got.json.error.param, got.headers.get('x-should-retry')];
    assert.deepEqual(seen, [400, field, 'false'], JSON.stringify(body));
  }
  const large = new File([new Uint8Array(205_000)], 'a.wav');
  const formCases: readonly [Record<string, string | File>, number, string][] = [
    [{ model: '' }, 400, 'model'],
    [{ model: new File(['x'], 'x') }, 400, 'model'],
    [{ model: 'no-such' }, 404, 'model'],
    [{ model: 'voice' }, 400, 'model'],
    [{ file: 'a text' }, 400, 'file'],
    [{ file: new File([], 'a.wav') }, 400, 'file'],
    [{ file: large }, 413, 'file'],
    [{ response_format: 'doc' }, 400, 'response_format'],
    [{ stream: 'maybe' }, 400, 'stream'],
  ];
  for (const [fields, status, field] of formCases) {
    const got = await transcribe(fields);
    const seen = [got.status, got.json.error.param, got.headers.get('x-should-retry')];
    assert.deepEqual(seen, [status, field, 'false'], JSON.stringify(fields));
  }
  const twice = form({ file: recording(1), model: 'ears' });
  twice.append('model', 'counted');
  const bad = await testbed.post('/v1/audio/transcriptions', twice);
  assert.deepEqual([bad.status, bad.json.error.param], [400, 'model']);
  const noForm = await testbed.post('/v1/audio/transcriptions', { model: 'ears' });
  assert.deepEqual([noForm.status, noForm.json.error.param], [400, 'content-type']);
  const poor = await transcribe({}, { key: testbed.poorKey });
  assert.equal(poor.status, 402);
  assert.deepEqual([testbed.first.requests.length, testbed.second.requests.length], [first, second]);
});
