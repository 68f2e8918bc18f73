/** Answers in the four protocols: an upstream's as body or stream, and what a client's says, read the same from both forms. */
import type { Answer } from '../../../core/contract/message.ts';
import { streamAnswer, wholeAnswer } from './harness.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are read here as their clients read them, member by member.
export type Json = any;
export type Family = 'chat' | 'responses' | 'messages' | 'gemini';
export const families: readonly Family[] = ['chat', 'responses', 'messages', 'gemini'];

/** What a client reads out of an answer; absent where the answer has none. */
export interface ReadAnswer {
  text?: string;
  refusal?: string;
  reasoning?: string;
  /** Name and arguments. */
  calls?: readonly (readonly [string, unknown])[];
  stop?: string;
  sequence?: string;
  tier?: string;
  /** `title url` of each, by place in the text where the protocol tells it. */
  cites?: readonly Json[];
  logprobs?: readonly Json[];
  images?: readonly string[];
  usage?: Json;
  error?: Json;
}

export function requestOf(client: Family, isStream: boolean): { path: string; body: object } {
  const model = 'model';
  const messages = [{ role: 'user', content: 'hi' }];
  switch (client) {
    case 'chat': {
      const streaming = isStream ? { stream: true, stream_options: { include_usage: true } } : {};
      return { path: '/v1/chat/completions', body: { model, messages, ...streaming } };
    }
    case 'responses':
      return { path: '/v1/responses', body: { model, input: 'hi', store: false, stream: isStream } };
    case 'messages':
      return { path: '/v1/messages', body: { model, max_tokens: 4096, messages, stream: isStream } };
    case 'gemini': {
      const method = isStream ? 'streamGenerateContent?alt=sse' : 'generateContent';
      const generationConfig = { thinkingConfig: { includeThoughts: true } };
      const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
      return { path: `/v1beta/models/model:${method}`, body: { contents, generationConfig } };
    }
  }
}

/** The upstream's answer: `body` is the whole one, of which a stream is made that says the same. */
export function upstreamAnswer(family: Family, body: Json, isStream: boolean): Answer {
  if (!isStream) return wholeAnswer(JSON.stringify(body));
  return streamAnswer(frames[family](body).map(([event, json]) => frame(event, json)));
}

function frame(event: string | undefined, json: Json): string {
  const data = typeof json === 'string' ? json : JSON.stringify(json);
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`;
}

type Frames = (body: Json) => readonly (readonly [string | undefined, Json])[];
const frames: Readonly<Record<Family, Frames>> = {
  chat({ choices, usage, ...rest }) {
    const chunk = (list: Json[], more = {}) => [undefined, { ...rest, choices: list, ...more }] as const;
    return [
      ...choices.map(({ index, message, logprobs }: Json) => chunk([{ index, delta: indexed(message), logprobs }])),
      ...choices.map(({ message: _message, logprobs: _logprobs, ...end }: Json) => chunk([{ ...end, delta: {} }])),
      chunk([], { usage }),
      [undefined, '[DONE]'],
    ];
  },
  responses(body) {
    const event = (type: string, members: object) => [type, { type, ...members }] as const;
    return [
      event('response.created', { response: { ...body, status: 'in_progress', output: [] } }),
      ...body.output.map((item: Json, index: number) =>
        event('response.output_item.done', { output_index: index, item }),
      ),
      event(`response.${body.status}`, { response: body }),
    ];
  },
  messages({ content, stop_reason, stop_sequence, stop_details, usage, ...head }) {
    const event = (type: string, members: object) => [type, { type, ...members }] as const;
    return [
      event('message_start', { message: { ...head, content: [], usage: { ...usage, output_tokens: 1 } } }),
      ...content.flatMap((block: Json, index: number) => [
        event('content_block_start', { index, content_block: { ...block, ...(block.input ? { input: {} } : {}) } }),
        ...(block.input
          ? [
              event('content_block_delta', {
                index,
                delta: { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
              }),
            ]
          : []),
        event('content_block_stop', { index }),
      ]),
      event('message_delta', { delta: { stop_reason, stop_sequence, stop_details }, usage }),
      event('message_stop', {}),
    ];
  },
  gemini: (body) => [[undefined, body]],
};

function indexed(message: Json): Json {
  const { tool_calls: calls, ...rest } = message;
  return calls === undefined
    ? rest
    : { ...rest, tool_calls: calls.map((call: Json, index: number) => ({ index, ...call })) };
}

/** Reads a client's answer. */
export function read(client: Family, body: string, isStream: boolean): ReadAnswer {
  const reported = readers[client](isStream ? folded(client, body) : JSON.parse(body));
  return Object.fromEntries(Object.entries(reported).filter(([, value]) => !isNothing(value)));
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** The stream's whole answer. */
function folded(client: Family, body: string): Json {
  const datas = [...body.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);
  const events = datas.filter((data) => data !== '[DONE]').map((data) => JSON.parse(data));
  const failed = events.find((event) => event.error && !event.response);
  if (failed !== undefined) return failed;
  return folders[client](events);
}

const folders: Readonly<Record<Family, (events: Json[]) => Json>> = {
  chat(events) {
    const message: Json = { content: '', refusal: '', reasoning_content: '', tool_calls: [], images: [] };
    const whole: Json = { ...events[0], choices: [{ message, logprobs: { content: [] } }] };
    for (const { choices, usage } of events) {
      whole.usage = usage ?? whole.usage;
      for (const { delta, finish_reason, logprobs } of choices) {
        for (const name of ['content', 'refusal', 'reasoning_content']) message[name] += delta[name] ?? '';
        for (const call of delta.tool_calls ?? []) {
          message.tool_calls[call.index] ??= { function: { name: call.function?.name, arguments: '' } };
          message.tool_calls[call.index].function.arguments += call.function?.arguments ?? '';
        }
        message.images.push(...(delta.images ?? []));
        message.annotations = delta.annotations ?? message.annotations;
        whole.choices[0].finish_reason = finish_reason ?? whole.choices[0].finish_reason;
        whole.choices[0].logprobs.content.push(...(logprobs?.content ?? []));
      }
    }
    return whole;
  },
  responses: (events) => events.at(-1).response,
  messages(events) {
    const whole = events[0].message;
    for (const { type, index, content_block: block, delta, usage } of events) {
      if (type === 'content_block_start') whole.content[index] = { ...block, json: '', citations: [] };
      if (type === 'message_delta') Object.assign(whole, delta, { usage });
      if (type !== 'content_block_delta') continue;
      const open = whole.content[index];
      if (delta.type === 'text_delta') open.text += delta.text;
      if (delta.type === 'thinking_delta') open.thinking += delta.thinking;
      if (delta.type === 'citations_delta') open.citations.push(delta.citation);
      if (delta.type === 'input_json_delta') {
        open.json += delta.partial_json;
        open.input = JSON.parse(open.json);
      }
    }
    return whole;
  },
  gemini(events) {
    const { candidates, ...rest } = events.at(-1);
    const all = events.flatMap((event) => event.candidates);
    const chosen = all.flatMap((one) => one.logprobsResult?.chosenCandidates ?? []);
    const content = { parts: all.flatMap((one) => one.content.parts) };
    return { ...rest, candidates: [{ ...candidates[0], content, logprobsResult: { chosenCandidates: chosen } }] };
  },
};

const readers: Readonly<Record<Family, (json: Json) => ReadAnswer>> = {
  chat({ error, choices, usage, service_tier }) {
    if (error) return { error };
    const { message, finish_reason, logprobs } = choices[0];
    return {
      text: message.content,
      refusal: message.refusal,
      reasoning: message.reasoning_content,
      calls: message.tool_calls?.map((call: Json) => [call.function.name, JSON.parse(call.function.arguments)]),
      stop: finish_reason,
      tier: service_tier,
      cites: message.annotations?.map(({ url_citation: one }: Json) => [one.url, one.start_index, one.end_index]),
      logprobs: logprobs?.content.map(({ token, logprob }: Json) => [token, logprob]),
      images: message.images?.map((image: Json) => image.image_url.url),
      usage,
    };
  },
  responses({ error, output, status, incomplete_details, usage, service_tier }) {
    if (error) return { error };
    const of = (type: string): Json[] => output.filter((item: Json) => item.type === type);
    const parts: Json[] = of('message').flatMap((item) => item.content);
    return {
      text: parts.map((part) => part.text ?? '').join(''),
      refusal: parts.map((part) => part.refusal ?? '').join(''),
      reasoning: of('reasoning')
        .flatMap((item) => item.summary.map((part: Json) => part.text))
        .join(''),
      calls: of('function_call').map((item) => [item.name, JSON.parse(item.arguments)] as const),
      stop: incomplete_details?.reason ?? status,
      tier: service_tier,
      cites: parts
        .flatMap((part) => part.annotations ?? [])
        .map((one) => (one.url ? [one.url, one.start_index, one.end_index] : [one.filename])),
      logprobs: parts.flatMap((part) => part.logprobs ?? []).map(({ token, logprob }) => [token, logprob]),
      images: of('image_generation_call').map((item) => item.result),
      usage,
    };
  },
  messages({ error, content, stop_reason, stop_sequence, stop_details, usage }) {
    if (error) return { error };
    return {
      text: content.map((block: Json) => block.text ?? '').join(''),
      refusal: stop_details?.explanation,
      reasoning: content.map((block: Json) => block.thinking ?? '').join(''),
      calls: content.filter((block: Json) => block.type === 'tool_use').map((block: Json) => [block.name, block.input]),
      stop: stop_reason,
      sequence: stop_sequence,
      tier: usage.service_tier,
      cites: content
        .flatMap((block: Json) => block.citations ?? [])
        .map((one: Json) => (one.url ? [one.url, one.cited_text] : [one.type, one.document_title, one.cited_text])),
      usage,
    };
  },
  gemini({ error, candidates, usageMetadata: usage }) {
    if (error) return { error };
    const { content, finishReason, groundingMetadata: grounding, logprobsResult } = candidates[0];
    const texts = (isThought: boolean): string =>
      content.parts.map((part: Json) => ((part.thought ?? false) === isThought ? (part.text ?? '') : '')).join('');
    return {
      text: texts(false),
      reasoning: texts(true),
      calls: content.parts.flatMap(({ functionCall: call }: Json) => (call ? [[call.name, call.args]] : [])),
      stop: finishReason,
      tier: usage.serviceTier,
      cites: grounding?.groundingSupports.map(({ segment, groundingChunkIndices: [at] }: Json) => [
        grounding.groundingChunks[at].web?.uri ?? grounding.groundingChunks[at].retrievedContext.title,
        segment.startIndex,
        segment.endIndex,
      ]),
      logprobs: logprobsResult?.chosenCandidates.map((one: Json) => [one.token, one.logProbability]),
      images: content.parts.flatMap(({ inlineData: data }: Json) => (data ? [data.data] : [])),
      usage,
    };
  },
};
