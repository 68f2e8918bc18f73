/** The rows of the matrix: what is asked and what is answered, the same for all protocols. */
import { hash } from 'node:crypto';
import type {
  ClientRequest,
  Lack,
  Play,
  PlayCall,
  PlayUsage,
  ProtocolName,
  RequestTool,
  RequestTurn,
  Seen,
} from './scenario.ts';

/** What becomes of a request. */
export type Verdict = 'exact' | 'mapped' | 'emulated' | 'refused' | 'cannot ask';

export interface Between {
  readonly client: ProtocolName;
  readonly vendor: ProtocolName;
  readonly isStream: boolean;
}

export interface Scenario {
  readonly name: string;
  /** One line for the page. */
  readonly about: string;
  /** `answer`: rounds of asking and answering. The others: what goes wrong, after the first round's ask. */
  readonly kind: 'answer' | 'fault' | 'fault-inside' | 'cut' | 'abort';
  readonly rounds: readonly Round[];
  /** Where something stands in for what the other side lacks: why. */
  readonly emulated?: (between: Between) => string | undefined;
  /** What is asked for: clients whose protocol lacks it cannot ask. */
  readonly needs?: Lack;
  /** A client leaves everything out of its history that its official types do not name. */
  readonly forgets?: true;
  /** Texts beside the asked ones may arrive: they introduce what stands elsewhere than it was asked. */
  readonly moreText?: true;
}

interface Round {
  /** `before`: the answer of the round before. */
  request(before: Seen | undefined): ClientRequest;
  /** What the vendor says. */
  play(between: Between): Play;
  /** The part of it that the client receives; all of it unless it says otherwise. */
  reported?(between: Between): Play;
}

/** Official types of chat name no reasoning; those of the other protocols do. */
export function forgets({ forgets }: Scenario, { client }: Between): boolean {
  return forgets === true && client === 'chat';
}

const words = {
  hello: 'Grüß Gott, 世界 🌍! "Quoted", back\\slashed,\nnew line.',
  thought: 'The user wants the weather, so I look it up.',
  signature: `${Buffer.from('a signature that only its vendor can read').toString('base64')}`,
  refusal: 'I cannot help with that request.',
} as const;

/** A PNG of one pixel, and the smallest text that begins like a PDF. */
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const pdf = Buffer.from(
  '%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n',
).toString('base64');

/** A sound of no length. */
const wav = Buffer.from(
  'RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\0\0\0\0',
  'latin1',
).toString('base64');

const usage: PlayUsage = { input: 31, cacheRead: 0, cacheWrite: 0, output: 17, reasoning: 0 };

const weather: RequestTool = {
  name: 'get_weather',
  description: 'Tells the weather of a city.',
  schema: {
    type: 'object',
    properties: { city: { type: 'string', description: 'Name of the city.' }, days: { type: 'integer' } },
    required: ['city'],
    additionalProperties: false,
  },
};
const time: RequestTool = {
  name: 'get_time',
  description: 'Tells the time of a city.',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
};
/** A schema that every protocol takes as it is. */
const answerSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
};

const call = (name: string, input: PlayCall['input']): PlayCall => ({
  id: `call_${hash('sha256', name + JSON.stringify(input)).slice(0, 20)}`,
  name,
  input,
});
const weatherCall = call('get_weather', { city: 'Zürich "old town"', days: 2 });
const timeCall = call('get_time', { city: 'Paris' });

const says = (text: string): RequestTurn => ({ by: 'user', parts: [{ kind: 'text', text }] });
const plain = (request: ClientRequest, play: Partial<Play>): Round => ({
  request: () => request,
  play: () => ({ meaning: 'stop', usage, ...play }),
});
const row = (name: string, about: string, round: Round, more: Partial<Scenario> = {}): Scenario => ({
  name,
  about,
  kind: 'answer',
  rounds: [round],
  ...more,
});

/** Asks with tools, is asked to call one after some reasoning, and gives the whole step back with the result. */
// Asked nowhere else: an equal conversation in which a vendor made the same call without reasoning would be ambiguous.
const thoughtAbout = 'What is the weather, on second thought?';
const reasoningRounds: readonly Round[] = [
  {
    request: () => ({ turns: [says(thoughtAbout)], tools: [weather], reasons: true }),
    play: () => ({
      reasoning: { text: words.thought, signature: words.signature },
      calls: [weatherCall],
      meaning: 'tool-calls',
      usage: { ...usage, reasoning: 9 },
    }),
  },
  {
    request: (before) => ({
      turns: [
        says(thoughtAbout),
        { by: 'echo', native: before!.echo },
        { by: 'tools', results: [{ callId: before!.calls[0]!.id, name: weather.name, text: 'sunny' }] },
      ],
      tools: [weather],
      reasons: true,
    }),
    play: () => ({ text: 'It is sunny.', meaning: 'stop', usage }),
  },
];

const running = plain({ turns: [says('Write a poem.')] }, { text: 'Once upon a time there was a gateway.' });

export const scenarios: readonly Scenario[] = [
  row('text', 'a question and its answer', plain({ turns: [says('Hello? 👋')] }, { text: words.hello })),
  row('system', 'a system prompt', plain({ system: 'You are terse.', turns: [says('Hello?')] }, { text: 'Hi.' })),
  row(
    'multi-turn',
    'turns of both sides',
    plain(
      { turns: [says('I am Ada.'), { by: 'assistant', text: 'Hello Ada.' }, says('Who am I?')] },
      { text: 'You are Ada.' },
    ),
  ),
  row(
    'tools',
    'declared tools and a call',
    plain(
      { turns: [says('What is the weather?')], tools: [weather, time] },
      { text: 'I look it up.', calls: [weatherCall], meaning: 'tool-calls' },
    ),
  ),
  row(
    'parallel tools',
    'two calls in one answer',
    plain(
      { turns: [says('Weather and time?')], tools: [weather, time] },
      { calls: [weatherCall, timeCall], meaning: 'tool-calls' },
    ),
  ),
  row(
    'tool results',
    'the results of two calls: a text with an image, and an error',
    plain(
      {
        turns: [
          says('Weather and time?'),
          { by: 'assistant', text: 'I look it up.', calls: [weatherCall, timeCall] },
          {
            by: 'tools',
            results: [
              { ...resultOf(weatherCall), text: 'sunny, see the map', image: { mediaType: 'image/png', base64: png } },
              { ...resultOf(timeCall), text: 'no such city', isError: true },
            ],
          },
        ],
        tools: [weather, time],
      },
      { text: 'It is sunny.' },
    ),
    {
      moreText: true,
      emulated: ({ client, vendor }) =>
        vendor === 'chat'
          ? 'the image follows as user content, the error is marked by its text'
          : vendor === 'responses' && client !== 'chat'
            ? 'the error is marked by its text'
            : undefined,
    },
  ),
  row('reasoning', 'reasoning, shown and given back with its signature', reasoningRounds[0]!, {
    rounds: reasoningRounds,
  }),
  row(
    'reasoning, forgotten',
    'the same with a client that gives back only what its official types name',
    reasoningRounds[0]!,
    {
      rounds: reasoningRounds,
      forgets: true,
      emulated: ({ client, vendor }) =>
        client === 'chat' && vendor !== 'chat' ? 'the gateway keeps the signature for the account' : undefined,
    },
  ),
  row(
    'image in',
    'an image beside a text',
    plain(
      {
        turns: [
          {
            by: 'user',
            parts: [
              { kind: 'text', text: 'What is this?' },
              { kind: 'image', mediaType: 'image/png', base64: png },
            ],
          },
        ],
      },
      { text: 'A pixel.' },
    ),
  ),
  row(
    'file in',
    'a PDF beside a text',
    plain(
      {
        turns: [
          {
            by: 'user',
            parts: [
              { kind: 'file', mediaType: 'application/pdf', base64: pdf, name: 'paper.pdf' },
              { kind: 'text', text: 'What does it say?' },
            ],
          },
        ],
      },
      { text: 'Nothing.' },
    ),
  ),
  row(
    'audio in',
    'a sound beside a text',
    plain(
      {
        turns: [
          {
            by: 'user',
            parts: [
              { kind: 'text', text: 'What is said?' },
              { kind: 'audio', mediaType: 'audio/wav', base64: wav },
            ],
          },
        ],
      },
      { text: 'Nothing.' },
    ),
    { needs: 'audio' },
  ),
  row(
    'structured output',
    'an answer that follows a JSON schema',
    plain({ turns: [says('Weather as JSON?')], schema: answerSchema }, { text: '{"city":"Zürich","degrees":21.5}' }),
  ),
  row(
    'stop sequence',
    'a text at which the answer ends',
    {
      request: () => ({ turns: [says('Count.')], stop: ['###'] }),
      // A vendor that knows no stop sequences goes on.
      play: ({ client, vendor }) =>
        vendor === 'responses' && client !== 'responses'
          ? { text: 'one two ### three', meaning: 'stop', usage }
          : { text: 'one two ', meaning: 'stop-sequence', sequence: '###', usage },
      reported: () => ({ text: 'one two ', meaning: 'stop-sequence', sequence: '###', usage }),
    },
    {
      emulated: ({ client, vendor }) =>
        vendor === 'responses' && client !== 'responses' ? 'the gateway finds the text and ends the answer' : undefined,
    },
  ),
  row(
    'two answers',
    'two answers at once (`n`, `candidateCount`)',
    plain({ turns: [says('Heads or tails?')], twice: true }, { text: 'Heads.', second: 'Tails.' }),
    { needs: 'choices' },
  ),
  row(
    'hints',
    'temperature and every other hint that the client has words for',
    plain({ turns: [says('Hello?')], hints: true }, { text: 'Hi.' }),
  ),
  row(
    'length stop',
    'an answer that reaches its bound',
    plain({ turns: [says('Write a poem.')], maxOutputTokens: 17 }, { text: 'Once upon a', meaning: 'length' }),
  ),
  row(
    'refusal',
    'the model will not',
    plain({ turns: [says('Do something bad.')] }, { refusal: words.refusal, meaning: 'refusal' }),
  ),
  row(
    'safety block',
    'a filter stops the prompt; nothing is said',
    plain(
      { turns: [says('Do something bad.')] },
      { meaning: 'refusal', isBlocked: true, usage: { ...usage, output: 0 } },
    ),
  ),
  row(
    'usage',
    'usage with cache reads, cache writes and reasoning',
    plain(
      { turns: [says('Hello again?')], reasons: true },
      {
        reasoning: { text: words.thought, signature: words.signature },
        text: 'Hi.',
        usage: { input: 5210, cacheRead: 4096, cacheWrite: 1024, output: 230, reasoning: 180 },
      },
    ),
  ),
  row('error before head', 'a prompt that is too long, and an overloaded vendor', running, { kind: 'fault' }),
  row('error in mid-stream', 'an overload after the first words (in a whole answer: an error under 200)', running, {
    kind: 'fault-inside',
  }),
  row('cut', 'the connection breaks after the first words', running, { kind: 'cut' }),
  row('client abort', 'the client leaves after the first words', running, { kind: 'abort' }),
];

function resultOf({ id, name }: PlayCall): { callId: string; name: string } {
  return { callId: id, name };
}
