/** Decisions in two forms: relayed byte for byte, converted into each other, charged by input tokens. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../../core/json/json.ts';
import { decisionsForm } from '../../../plugins/endpoints/decisions/decisions.ts';
import type { Form } from '../../../plugins/endpoints/decisions/form.ts';
import { systemoneForm } from '../../../plugins/endpoints/decisions/systemone.ts';
import { fc } from '../../helpers/properties.ts';
import { openTestbed, type Testbed } from './setup.ts';

let testbeds: Record<'openai' | 'typesafe', Testbed>;
const models = `
  decider: { owned_by: x, kind: decision, targets: [first/their-decider], price: { input: 0.1 } }
  cheap-reads: { owned_by: x, kind: decision, targets: [first/their-decider], price: { input: 0.1, cache_read: 0.01, output: 2 } }
  judge: { owned_by: x, kind: moderation, targets: [first/their-judge], price: free }
`;
before(async () => {
  const open = (wire: string) => openTestbed(models, [wire, 'openai-moderations'], 'endpoints: { questions: 5 }');
  const [openai, typesafe] = await Promise.all(['openai-decisions', 'typesafe-systemone'].map(open));
  testbeds = { openai: openai!, typesafe: typesafe! };
});
after(() => Promise.all(Object.values(testbeds).map((testbed) => testbed.stop())));

const headers = { 'content-type': 'application/json' };
const input = 'I was charged twice.';
const requested = {
  openai: {
    input,
    questions: [
      { type: 'predicate', instructions: 'Is it about money?', name: 'money' },
      {
        type: 'choice',
        instructions: 'Which team?',
        choices: [{ value: 'billing', description: 'charges' }, { value: 'support' }],
        name: 'team',
      },
      { type: 'score', instructions: 'How angry?', levels: [{ label: 'calm' }, { label: 'angry' }], name: 'anger' },
    ],
  },
  typesafe: {
    state: input,
    questions: {
      money: { type: 'noul', instructions: 'Is it about money?' },
      team: { type: 'choice', instructions: 'Which team?', criteria: { billing: 'charges', support: null } },
      anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'angry'] },
    },
  },
};
const answered = {
  openai: {
    answers: [
      { type: 'predicate', name: 'money', probability: 0.97 },
      {
        type: 'choice',
        name: 'team',
        choice: 'billing',
        confidence: 0.8,
        probabilities: [
          { value: 'billing', probability: 0.9 },
          { value: 'support', probability: 0.1 },
        ],
      },
      {
        type: 'score',
        name: 'anger',
        score: 0.25,
        confidence: 0.5,
        probabilities: [
          { label: 'calm', value: 0, probability: 0.75 },
          { label: 'angry', value: 1, probability: 0.25 },
        ],
      },
    ],
    usage: {
      input_tokens: 40,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 40,
    },
  },
  typesafe: {
    answers: {
      money: { type: 'noul', noul: 0.97 },
      team: { type: 'choice', choice: 'billing', confidence: 0.8, probabilities: { billing: 0.9, support: 0.1 } },
      anger: {
        type: 'score',
        score: 0.25,
        legend: { 0: 'calm', 1: 'angry' },
        probabilities: { 0: 0.75, 1: 0.25 },
        confidence: 0.5,
      },
    },
    usage: { input_tokens: 40, output_tokens: 0 },
  },
};
const paths = { openai: '/v1/decisions', typesafe: '/v1/systemone' };
const names = ['openai', 'typesafe'] as const;

for (const upstream of names) {
  const vendor = () => testbeds[upstream].first;
  const send = async (client: (typeof names)[number], more: object = {}) => {
    const count = vendor().requests.length;
    const got = await testbeds[upstream].post(paths[client], { model: 'decider', ...requested[client], ...more });
    return { got, sent: vendor().requests[count] };
  };

  test(`a client of the ${upstream} form gets the vendor's own bytes, and its members reach the vendor`, async () => {
    const text = JSON.stringify({ model: 'their-decider-2', ...answered[upstream] }, null, 1);
    vendor().play({ headers, body: text });
    const { got, sent } = await send(upstream, { some_member: { of: 'theirs' } });
    assert.deepEqual([got.status, got.text], [200, text]);
    assert.equal(sent!.url, paths[upstream]);
    const body = { model: 'their-decider', ...requested[upstream], some_member: { of: 'theirs' } };
    assert.equal(sent!.body.toString(), JSON.stringify(body));
    assert.equal(got.headers.get('x-gateway-dropped'), null);
  });

  test(`a client of the other form gets answers of ${upstream} in its own, for the same money`, async () => {
    const client = upstream === 'openai' ? 'typesafe' : 'openai';
    vendor().play({ headers, body: JSON.stringify({ model: 'their-decider-2', ...answered[upstream] }) });
    const before = await testbeds[upstream].balance();
    const charged = (await testbeds[upstream].charges(0)).length;
    const { got, sent } = await send(client, { safety_identifier: 'someone' });
    assert.equal(got.status, 200, got.text);
    assert.deepEqual(JSON.parse(sent!.body.toString()), { model: 'their-decider', ...requested[upstream] });
    assert.equal(sent!.url, paths[upstream]);
    assert.deepEqual(got.json, { model: 'decider', ...answered[client] });
    assert.equal(got.headers.get('x-gateway-dropped'), 'safety_identifier');
    const [charge] = await testbeds[upstream].charges(charged + 1);
    assert.deepEqual([charge!.detail.usage, charge!.detail.estimated], [{ input: 40 }, false]);
    assert.equal(before - (await testbeds[upstream].balance()), 40n * 100n);
  });

  test(`a refusal by a vendor of ${upstream} reaches clients of both forms, and costs nothing`, async () => {
    const error = { message: 'no such thing', type: 'invalid_request_error', param: 'input', code: null };
    vendor().play({ status: 400, headers, body: JSON.stringify({ error }) });
    const before = await testbeds[upstream].balance();
    for (const client of names) {
      const { got } = await send(client);
      assert.equal(got.status, 400);
      assert.ok(got.json.error.message.length > 0);
    }
    assert.equal(await testbeds[upstream].balance(), before);
  });
}

test('any reported usage is charged to the token, by the classes that a price names', async () => {
  const testbed = testbeds.openai;
  const counts = fc.record({ fresh: fc.nat(900), cached: fc.nat(900), written: fc.nat(900), output: fc.nat(20) });
  await fc.assert(
    fc.asyncProperty(counts, async ({ fresh, cached, written, output }) => {
      const usage = {
        input_tokens: fresh + cached + written,
        input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
        output_tokens: output,
      };
      testbed.first.play({ headers, body: JSON.stringify({ ...answered.openai, usage }) });
      const [before, count] = [await testbed.balance(), (await testbed.charges(0)).length];
      const got = await testbed.post('/v1/systemone', { model: 'cheap-reads', ...requested.typesafe });
      assert.deepEqual(got.json.usage, { input_tokens: usage.input_tokens, output_tokens: output });
      await testbed.charges(count + 1);
      const due = (fresh + written) * 100 + cached * 10 + output * 2_000;
      assert.equal(before - (await testbed.balance()), BigInt(due));
    }),
    { numRuns: 10 },
  );
});

test('an impossible count is not charged; an input that is read with each question is', async () => {
  const testbed = testbeds.typesafe;
  const state = 'long '.repeat(4_000);
  for (const [reported, charged] of [
    [30_000, 30_000],
    [9_000_000, undefined],
  ] as const) {
    const usage = { input_tokens: reported, output_tokens: 0 };
    testbed.first.play({ headers, body: JSON.stringify({ ...answered.typesafe, usage }) });
    const count = (await testbed.charges(0)).length;
    await testbed.post('/v1/systemone', { model: 'decider', ...requested.typesafe, state });
    const [charge] = await testbed.charges(count + 1);
    const input = charge!.detail.usage.input!;
    if (charged === undefined) assert.ok(input < 11_000, String(input));
    else assert.equal(input, charged);
  }
});

test('an answer without a usage is charged by an estimate', async () => {
  const testbed = testbeds.openai;
  const { usage: _, ...rest } = answered.openai;
  testbed.first.play({ headers, body: JSON.stringify(rest) });
  const count = (await testbed.charges(0)).length;
  const got = await testbed.post('/v1/decisions', { model: 'decider', ...requested.openai });
  assert.equal(got.status, 200);
  const [charge] = await testbed.charges(count + 1);
  assert.ok(charge!.detail.estimated && charge!.detail.usage.input! > 100);
});

test('answers that do not match the questions are refused', async () => {
  const { openai, typesafe } = answered;
  const wrong: readonly [keyof typeof testbeds, unknown][] = [
    ['openai', openai.answers.slice(1)],
    ['openai', [openai.answers[1], openai.answers[0], openai.answers[2]]],
    ['openai', [openai.answers[0], { ...openai.answers[1], choice: 'sales' }, openai.answers[2]]],
    ['openai', [openai.answers[0], { ...openai.answers[1], probabilities: [] }, openai.answers[2]]],
    ['typesafe', { ...typesafe.answers, team: undefined }],
    ['typesafe', { ...typesafe.answers, money: { type: 'noul' } }],
    ['typesafe', { ...typesafe.answers, team: { ...typesafe.answers.team, probabilities: { billing: 1 } } }],
  ];
  for (const [upstream, answers] of wrong) {
    const client = upstream === 'openai' ? 'typesafe' : 'openai';
    testbeds[upstream].first.play({ headers, body: JSON.stringify({ ...answered[upstream], answers }) });
    const got = await testbeds[upstream].post(paths[client], { model: 'decider', ...requested[client] });
    assert.equal(got.status, 502, JSON.stringify(answers));
  }
});

test('a refused question is one among the answers, in both forms', async () => {
  const answers = [{ type: 'refusal', name: 'money' }, ...answered.openai.answers.slice(1)];
  testbeds.openai.first.play({ headers, body: JSON.stringify({ ...answered.openai, answers }) });
  const { json } = await testbeds.openai.post('/v1/systemone', { model: 'decider', ...requested.typesafe });
  assert.deepEqual(json.answers, { ...answered.typesafe.answers, money: { type: 'refusal' } });
});

test('a yes-or-no question with criteria becomes a choice of true and false where predicates accept none', async () => {
  const { first } = testbeds.openai;
  const probabilities = [
    { value: false, probability: 0.2 },
    { value: true, probability: 0.8 },
  ];
  const answers = [{ type: 'choice', name: 'refund', choice: true, confidence: 0.6, probabilities }];
  first.play({ headers, body: JSON.stringify({ ...answered.openai, answers }) });
  const criteria = { true: 'a refund is wanted', false: { not: 'wanted' } };
  const questions = { refund: { type: 'noul', instructions: 'A refund?', criteria } };
  const { json } = await testbeds.openai.post('/v1/systemone', { model: 'decider', state: { a: 1 }, questions });
  assert.deepEqual(json.answers, { refund: { type: 'noul', noul: 0.8 } });
  const sent = JSON.parse(first.requests.at(-1)!.body.toString());
  assert.deepEqual(sent.questions[0].choices, [
    { value: true, description: 'a refund is wanted' },
    { value: false, description: '{"not":"wanted"}' },
  ]);
  assert.deepEqual(sent.input, [{ role: 'user', content: [{ type: 'input_json', data: { a: 1 } }] }]);
});

test('a conversation with tool calls becomes a state with all of its texts', async () => {
  const { first } = testbeds.typesafe;
  first.play({ headers, body: JSON.stringify(answered.typesafe) });
  const conversation = [
    { role: 'system', content: 'Be fair.' },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'Look:' },
        { type: 'input_json', data: { total: 5 } },
      ],
    },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}', id: 'fc_1' },
    { type: 'function_call_output', call_id: 'c1', output: 'paid twice' },
    { role: 'assistant', content: [{ type: 'output_text', text: 'I see.' }] },
  ];
  const got = await testbeds.typesafe.post('/v1/decisions', {
    model: 'decider',
    ...requested.openai,
    input: conversation,
  });
  assert.equal(got.status, 200, got.text);
  assert.equal(got.headers.get('x-gateway-dropped'), 'input.id');
  assert.deepEqual(JSON.parse(first.requests.at(-1)!.body.toString()).state, [
    { role: 'system', content: 'Be fair.' },
    { role: 'user', content: ['Look:', { total: 5 }] },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'paid twice' },
    { role: 'assistant', content: 'I see.' },
  ]);
});

test('requests that the other form cannot express, and malformed ones, are refused by their field before anything is sent', async () => {
  const sent = testbeds.openai.first.requests.length + testbeds.typesafe.first.requests.length;
  const [predicate] = requested.openai.questions;
  const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==' };
  const choice = (choices: unknown) => ({ questions: [predicate, { type: 'choice', instructions: 'x', choices }] });
  const levels = (count: number) => ({ type: 'score', instructions: 'x', levels: Array(count).fill({ label: 'l' }) });
  const six = Array(6).fill(predicate);
  const many = Array.from({ length: 256 }, (_, index) => ({ value: String(index) }));
  const noul = { type: 'noul', instructions: 'x' };
  const cases: readonly [
    upstream: keyof typeof testbeds,
    client: keyof typeof testbeds,
    change: object,
    field: string,
  ][] = [
    ['typesafe', 'openai', { input: [{ role: 'user', content: [image] }] }, 'input[0].content[0]'],
    ['typesafe', 'openai', { questions: [{ ...predicate, instructions: [image] }] }, 'questions[0].instructions[0]'],
    ['typesafe', 'openai', { input: [{ type: 'reasoning' }] }, 'input[0].type'],
    ['typesafe', 'openai', choice([{ value: true }, { value: 'true' }]), 'questions[1].choices'],
    ['typesafe', 'openai', choice([{ value: 5 }]), 'questions[1].choices[0].value'],
    ['typesafe', 'openai', { questions: [levels(11)] }, 'questions[0].levels'],
    ['typesafe', 'openai', { questions: [{ type: 'rank', instructions: 'x' }] }, 'questions[0].type'],
    ['typesafe', 'openai', { questions: [{ type: 'predicate' }] }, 'questions[0].instructions'],
    ['openai', 'typesafe', { assets: { a: 'b' } }, 'assets'],
    ['openai', 'typesafe', { questions: { q: { type: 'box', instructions: 'x' } } }, 'questions.q.type'],
    ['openai', 'typesafe', { questions: { q: { ...noul, type: 'choice' } } }, 'questions.q.criteria'],
    ['openai', 'openai', { input: undefined }, 'input'],
    ['openai', 'openai', { input: 5 }, 'input'],
    ['openai', 'openai', { model: undefined }, 'model'],
    ['openai', 'openai', { model: 'judge' }, 'model'],
    ['openai', 'openai', { questions: undefined }, 'questions'],
    ['openai', 'openai', { questions: [] }, 'questions'],
    ['openai', 'openai', { questions: six }, 'questions'],
    ['openai', 'openai', choice(many), 'questions[1].choices'],
    ['openai', 'openai', { questions: ['x'] }, 'questions[0]'],
    ['openai', 'openai', { questions: [{ instructions: 'x' }] }, 'questions[0].type'],
    ['typesafe', 'typesafe', { state: undefined }, 'state'],
    ['typesafe', 'typesafe', { state: 5 }, 'state'],
    ['typesafe', 'typesafe', { questions: [noul] }, 'questions'],
    [
      'typesafe',
      'typesafe',
      { questions: Object.fromEntries(six.map((_, index) => [`q${index}`, noul])) },
      'questions',
    ],
    [
      'typesafe',
      'typesafe',
      { questions: { q: { ...noul, criteria: Object.fromEntries(many.map(({ value }) => [value, null])) } } },
      'questions.q.criteria',
    ],
  ];
  for (const [upstream, client, change, field] of cases) {
    const got = await testbeds[upstream].post(paths[client], { model: 'decider', ...requested[client], ...change });
    const seen = [got.status, got.json.error.param, got.headers.get('x-should-retry')];
    assert.deepEqual(seen, [400, field, 'false'], JSON.stringify(change).slice(0, 200));
    assert.equal(got.json.detail, client === 'typesafe' ? got.json.error.message : undefined);
  }
  assert.equal(testbeds.openai.first.requests.length + testbeds.typesafe.first.requests.length, sent);
});

const label = fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom('__proto__', '1', 'constructor', 'true'));
const weights = (count: number) =>
  fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: count, maxLength: count });
/** A question, and an answer of a vendor to it, in the form of TypeSafe. */
const pair = fc.oneof(
  fc
    .record({ criteria: fc.option(fc.record({ true: label, false: label })), noul: weights(1) })
    .map(({ criteria, noul }) => ({
      question: { type: 'noul', instructions: 'x', ...(criteria === null ? {} : { criteria }) },
      answer: { type: 'noul', noul: noul[0]! },
    })),
  fc.uniqueArray(label, { minLength: 1, maxLength: 6 }).chain((labels) =>
    weights(labels.length + 1).map((given) => ({
      question: { type: 'choice', instructions: 'x', criteria: Object.fromEntries(labels.map((one) => [one, null])) },
      answer: {
        type: 'choice',
        choice: labels[0]!,
        confidence: given.at(-1)!,
        probabilities: Object.fromEntries(labels.map((one, index) => [one, given[index]!])),
      },
    })),
  ),
  fc.array(label, { minLength: 2, maxLength: 10 }).chain((levels) =>
    weights(levels.length + 2).map((given) => ({
      question: { type: 'score', instructions: 'x', criteria: levels },
      answer: {
        type: 'score',
        score: given.at(-1)!,
        legend: Object.fromEntries(levels.entries()),
        probabilities: Object.fromEntries(levels.map((_, index) => [index, given[index]!])),
        confidence: given.at(-2)!,
      },
    })),
  ),
);

test('answers converted to the other form and back keep every probability', () => {
  const through = (form: Form, json: JsonObject, request: JsonObject): JsonObject => {
    const { questions } = form.read(request);
    const text = JSON.stringify(form.encodeAnswers(form.readAnswers(json, questions), questions, 'm', { input: 3 }));
    return JSON.parse(text) as JsonObject;
  };
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(label, pair), { selector: ([id]) => id, minLength: 1, maxLength: 5 }),
      (pairs) => {
        const questions = Object.fromEntries(pairs.map(([id, { question }]) => [id, question]));
        const answers = Object.fromEntries(pairs.map(([id, { answer }]) => [id, answer]));
        const request = { model: 'm', state: 's', questions };
        const usage = { input_tokens: 3, output_tokens: 0 };
        const answer = { model: 'm', answers, usage };
        assert.deepEqual(through(systemoneForm, answer, request), JSON.parse(JSON.stringify(answer)));
        // As a vendor of the other form answers what it was asked, and its client gets it.
        const read = systemoneForm.read(request);
        const theirs = JSON.parse(JSON.stringify(decisionsForm.encode(read, 'm'))) as JsonObject;
        const asOpenai = decisionsForm.read(theirs).questions;
        const given = systemoneForm.readAnswers(answer, read.questions).map((one, index) => {
          const { asks: requests } = asOpenai[index]!;
          // Criteria were asked as a choice.
          if (one.kind !== 'yes' || requests.kind !== 'choice') return one;
          const { probability } = one;
          return { kind: 'choice' as const, at: 0, confidence: 1, probabilities: [probability, 1 - probability] };
        });
        const spoken = JSON.parse(JSON.stringify(decisionsForm.encodeAnswers(given, asOpenai, 'm', { input: 3 })));
        const back = decisionsForm.readAnswers(spoken, read.questions);
        const reported = systemoneForm.encodeAnswers(back, read.questions, 'm', { input: 3 });
        assert.deepEqual(JSON.parse(JSON.stringify(reported)), JSON.parse(JSON.stringify(answer)));
      },
    ),
    { numRuns: 200 },
  );
});

test('questions without names, or with the same one, are distinguished, and answered under their own names', () => {
  const requestOf = {
    input: 'x',
    questions: ['a', 'a', undefined, '', 'question_2'].map((name) => ({ ...predicateOf(name) })),
  };
  const { questions } = decisionsForm.read(requestOf);
  assert.equal(new Set(questions.map(({ id }) => id)).size, 5);
  assert.deepEqual(
    questions.map(({ name }) => name),
    ['a', 'a', null, '', 'question_2'],
  );
});

function predicateOf(name: string | undefined): JsonObject {
  return { type: 'predicate', instructions: 'x', ...(name === undefined ? {} : { name }) };
}

test("a score on a vendor's own scale is converted to the places of its levels", () => {
  const questions = systemoneForm.read({
    state: 's',
    questions: { q: { type: 'score', instructions: 'x', criteria: ['a', 'b'] } },
  }).questions;
  const probabilities = [
    { label: 'a', value: 1, probability: 0.25 },
    { label: 'b', value: 2, probability: 0.75 },
  ];
  const json = { answers: [{ type: 'score', name: 'q', score: 1.75, confidence: 0.5, probabilities }] };
  const [answer] = decisionsForm.readAnswers(json, questions);
  assert.deepEqual(answer, { kind: 'score', score: 0.75, confidence: 0.5, probabilities: [0.25, 0.75] });
});
