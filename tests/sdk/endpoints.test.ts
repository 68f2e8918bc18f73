/** The official OpenAI and Google clients at the endpoints beside chat, before the demo gateway and its sandbox. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { audioSeconds, sourceOf } from '../../plugins/common/audio/duration.ts';
import { type Demo, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

function openai(key = demo.keys.good): OpenAI {
  return new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, maxRetries: 0 });
}

function google(): GoogleGenAI {
  return new GoogleGenAI({ apiKey: demo.keys.good, httpOptions: { baseUrl: demo.origin } });
}

/** Calls, and checks that what was used is what is paid and billed. */
async function paid(call: () => Promise<unknown>) {
  const settled = await demo.settled(call);
  assert.deepEqual(settled.usage, settled.entry.usage);
  assert.equal(settled.paid, settled.due);
  assert.ok(!settled.estimated && settled.paid > 0n);
  return settled;
}

const length = (vector: readonly number[]) => Math.hypot(...vector);
const dot = (left: readonly number[], right: readonly number[]) =>
  left.reduce((sum, value, index) => sum + value * right[index]!, 0);

// The first is relayed by OpenAI's client and converted for Google's, the second the other way round.
for (const model of ['text-embedding-3-small', 'gemini-embedding-001']) {
  test(`both clients get unit vectors of ${model}, nearer for texts that share more`, async () => {
    const texts = ['the cat sat on the mat', 'the cat lay on the mat', 'quarterly revenue grew strongly'];
    let vectors: number[][] = [];
    const first = await paid(async () => {
      // The client asks for base64 by itself and decodes it.
      const { data, usage } = await openai().embeddings.create({ model, input: texts, dimensions: 64 });
      vectors = data.map(({ embedding }) => embedding);
      assert.equal(usage.prompt_tokens, 6 + 6 + 8);
    });
    assert.deepEqual(first.usage, { input: 20 });
    for (const vector of vectors) assert.ok(vector.length === 64 && Math.abs(length(vector) - 1) < 1e-5);
    assert.ok(dot(vectors[0]!, vectors[1]!) > dot(vectors[0]!, vectors[2]!) + 0.3);
    let others: number[][] = [];
    await paid(async () => {
      const config = { outputDimensionality: 64 };
      const answer = await google().models.embedContent({ model, contents: texts, config });
      others = answer.embeddings!.map(({ values }) => values!);
    });
    assert.equal(others.length, 3);
    for (const [index, vector] of others.entries()) assert.ok(Math.abs(dot(vector, vectors[index]!) - 1) < 1e-5);
    const floats = await openai().embeddings.create({
      model,
      input: texts[0]!,
      dimensions: 64,
      encoding_format: 'float',
    });
    assert.ok(Math.abs(dot(floats.data[0]!.embedding as number[], vectors[0]!) - 1) < 1e-5);
  });
}

const documents = ['Berlin is in Germany.', 'The capital of France is Paris.', 'Bread and cheese.'];
const query = 'What is the capital of France?';

/** No official client of these vendors is a dependency: their requests as they send them. */
async function post(path: string, body: object) {
  const answer = await fetch(`${demo.origin}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${demo.keys.good}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.equal(answer.status, 200);
  // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
  return (await answer.json()) as any;
}

for (const model of ['rerank-v3.5', 'jina-reranker-v2-base-multilingual', 'rerank-3']) {
  test(`${model} ranks the document that answers first, in every shape`, async () => {
    for (const [path, member, more] of [
      ['/v2/rerank', 'results', { top_n: 2 }],
      ['/v1/rerank', 'results', { top_n: 2 }],
      ['/v1/rerank', 'data', { top_k: 2 }],
    ] as const) {
      let answer: Record<string, { index: number }[]> = {};
      await paid(async () => {
        answer = await post(path, { model, query, documents, ...more });
      });
      assert.deepEqual([answer[member]!.length, answer[member]![0]!.index], [2, 1]);
    }
  });
}

// The first is relayed by OpenAI's client and converted for TypeSafe's, the second the other way round.
for (const model of ['gpt-6-luna-decisions', 'jev-latest']) {
  test(`${model} answers typed questions in both forms, with the same probabilities`, async () => {
    const text = 'I was charged twice and want a refund.';
    const instructions = 'Which team?';
    let [first, second]: number[][] = [[], []];
    await paid(async () => {
      const { answers, usage } = await openai().decisions.create({
        model,
        input: text,
        questions: [
          { type: 'choice', instructions, name: 'team', choices: [{ value: 'refund' }, { value: 'sales' }] },
          { type: 'score', instructions, levels: [{ label: 'calm' }, { label: 'charged' }] },
          { type: 'predicate', instructions: 'refund' },
        ],
      });
      const [choice, score, predicate] = answers;
      assert.ok(choice?.type === 'choice' && score?.type === 'score' && predicate?.type === 'predicate');
      assert.deepEqual([choice.name, choice.choice, score.name, predicate.name], ['team', 'refund', null, null]);
      assert.ok(usage.input_tokens > 0 && usage.total_tokens === usage.input_tokens);
      first = [choice, score].flatMap(({ probabilities }) => probabilities.map(({ probability }) => probability));
      first.push(predicate.probability);
    });
    await paid(async () => {
      const { answers } = await post('/v1/systemone', {
        model,
        state: text,
        questions: {
          team: { type: 'choice', instructions, criteria: { refund: null, sales: null } },
          mood: { type: 'score', instructions, criteria: ['calm', 'charged'] },
          wanted: { type: 'noul', instructions: 'refund' },
        },
      });
      assert.deepEqual([answers.team.choice, answers.mood.legend], ['refund', { 0: 'calm', 1: 'charged' }]);
      second = [
        ...Object.values<number>(answers.team.probabilities),
        ...Object.values<number>(answers.mood.probabilities),
      ];
      second.push(answers.wanted.noul);
    });
    assert.deepEqual(second, first);
  });
}

test('a moderation is free, and flags a text that names a category', async () => {
  const calm = await openai(demo.keys.broke).moderations.create({ input: 'A calm text' });
  assert.deepEqual([calm.results.length, calm.results[0]!.flagged], [1, false]);
  const harsh = await openai().moderations.create({
    model: 'omni-moderation-latest',
    input: [
      { type: 'text', text: 'A text about violence' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
    ],
  });
  assert.deepEqual([harsh.results[0]!.flagged, harsh.results[0]!.categories.violence], [true, true]);
});

for (const format of ['mp3', 'wav', 'pcm'] as const) {
  test(`speech is returned as ${format} of the text's length, and is paid by its characters`, async () => {
    const input = 'Fifteen letters every second, four times. And twenty more words.';
    let audio = Buffer.alloc(0);
    const call = await paid(async () => {
      const answer = await openai().audio.speech.create({
        model: 'tts-1',
        voice: 'alloy',
        input,
        response_format: format,
      });
      audio = Buffer.from(await answer.arrayBuffer());
    });
    assert.deepEqual(call.usage, { character: input.length });
    const seconds = format === 'pcm' ? audio.length / 48_000 : (await audioSeconds(sourceOf(audio)))!;
    assert.ok(Math.abs(seconds - input.length / 15) < 0.05, String(seconds));
  });
}

test('speech as events is paid by the tokens of its last event; without events they are estimated', async () => {
  const input = 'Fifteen letters every second.';
  const usual = { model: 'gpt-4o-mini-tts', voice: 'alloy', input, response_format: 'wav' } as const;
  const call = await paid(async () => {
    const answer = await openai().audio.speech.create({ ...usual, stream_format: 'sse' });
    const text = await answer.text();
    assert.match(text, /"type":"speech.audio.done".*"total_tokens"/);
  });
  assert.deepEqual(call.usage, { input: 8, output_audio: 39 });
  const whole = await demo.settled(async () => {
    await (await openai().audio.speech.create(usual)).arrayBuffer();
  });
  // 29 characters take 1.93 seconds.
  assert.deepEqual([whole.usage, whole.estimated], [{ character: 29, input: 10, output_audio: 41 }, true]);
  assert.equal(whole.paid, whole.due);
});

async function recording(seconds: number): Promise<File> {
  const input = 'x'.repeat(seconds * 15);
  const answer = await openai().audio.speech.create({ model: 'tts-1', voice: 'alloy', input, response_format: 'wav' });
  return new File([await answer.arrayBuffer()], 'talk.wav', { type: 'audio/wav' });
}

test('a recording is transcribed in every format, and paid by its seconds or its tokens', async () => {
  const file = await recording(7);
  const { transcriptions, translations } = openai().audio;
  const json = await paid(async () => {
    assert.match((await transcriptions.create({ file, model: 'whisper-1' })).text, /7 seconds of talk.wav/);
  });
  assert.deepEqual(json.usage, { audio: 7 });
  await paid(async () => {
    const answer = await transcriptions.create({ file, model: 'whisper-1', response_format: 'verbose_json' });
    assert.deepEqual([answer.duration, answer.segments!.length], [7, 1]);
  });
  await paid(async () => {
    assert.match((await translations.create({ file, model: 'whisper-1' })).text, /7 seconds/);
  });
  for (const format of ['text', 'srt', 'vtt'] as const) {
    const call = await demo.settled(async () => {
      const text = await transcriptions.create({ file, model: 'whisper-large-v3-turbo', response_format: format });
      assert.match(text, format === 'text' ? /^The sandbox/ : /00:00:00[,.]000 --> 00:00:07[,.]000/);
    });
    // The answer has no counters: the file's own length counts.
    assert.deepEqual([call.usage.audio, call.estimated, call.paid], [7, true, call.due]);
  }
  const tokens = await paid(async () => {
    let text = '';
    const events = await transcriptions.create({ file, model: 'gpt-4o-transcribe', stream: true });
    for await (const event of events) if (event.type === 'transcript.text.delta') text += event.delta;
    assert.match(text, /7 seconds of talk.wav/);
  });
  assert.equal(tokens.usage.input_audio, 140);
});

test('failures raise the error class of each client, and none is billed', async () => {
  const billed = await demo.billed();
  const model = 'text-embedding-3-small';
  await assert.rejects(openai().embeddings.create({ model, input: [] }), { status: 400 });
  await assert.rejects(openai().embeddings.create({ model: 'no-such', input: 'x' }), { status: 404 });
  await assert.rejects(openai(demo.keys.broke).embeddings.create({ model, input: 'x' }), { status: 402 });
  await assert.rejects(openai(demo.keys.narrow).embeddings.create({ model, input: 'x' }), { status: 403 });
  await assert.rejects(openai().embeddings.create({ model, input: '[[sandbox: status=400]]' }), { status: 400 });
  await assert.rejects(google().models.embedContent({ model: 'gpt-5.4-mini', contents: 'x' }), { status: 400 });
  const tokens = { model: 'gemini-embedding-001', input: [1, 2, 3] };
  await assert.rejects(openai().embeddings.create(tokens), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError && /takes texts, not tokens/.test(error.message), String(error));
    return true;
  });
  assert.equal(await demo.billed(), billed);
});

test('the ledger passes its audit at the end', async () => {
  assert.deepEqual((await demo.audit()).violations, []);
});
