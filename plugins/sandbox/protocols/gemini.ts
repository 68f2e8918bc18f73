/** Encodes a script as generateContent, whole, as events and as a JSON array. Pure. Form from recordings. */

import { type Counts, countsOf, inputTokens } from '../counts.ts';
import type { Fault } from '../fault.ts';
import type { Call, Frame, Protocol, Refusal, Turn } from '../protocol.ts';
import type { Choice, Finish, ToolCall } from '../script/script.ts';
import { piecesOf } from '../script/tokens.ts';
import { seal } from '../seal.ts';
import { bearerKey } from './chat-faults.ts';
import { decodeGemini } from './gemini-request.ts';

const finishReasons: Record<Finish, string> = {
  stop: 'STOP',
  stop_sequence: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  refusal: 'SAFETY',
};

const statusNames: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
};

export const gemini: Protocol = {
  key: keyOf,
  decode: decodeGemini,
  whole: wholeContent,
  stream: streamContent,
  counted: (tokens) => pretty({ totalTokens: tokens, promptTokensDetails: [{ modality: 'TEXT', tokenCount: tokens }] }),
  fault: geminiFault,
  streamFault: (fault, turn, events) =>
    turn.call.events
      ? `data: ${JSON.stringify(wireFault(fault))}\r\n\r\n`
      : `${events === 0 ? '[' : ',\r\n'}${pretty(wireFault(fault))}]`,
  headers: () => ({ 'x-content-type-options': 'nosniff', 'server-timing': 'gfet4t7; dur=1' }),
  streamType: (call) => (call.events ? 'text/event-stream' : 'application/json; charset=UTF-8'),
};

function keyOf({ headers, query }: Call): string | undefined {
  const named = headers['x-goog-api-key'];
  return typeof named === 'string' ? named : (query.get('key') ?? bearerKey(headers.authorization));
}

function pretty(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function wireFault(fault: Fault): object {
  const status = statusNames[fault.status] ?? (fault.status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT');
  const details: object[] = [];
  if (fault.status === 429) {
    details.push({
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'RATE_LIMIT_EXCEEDED',
      domain: 'googleapis.com',
      metadata: {},
    });
  }
  if (fault.retryAfter !== undefined) {
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${fault.retryAfter}s` });
  }
  const detailsMember = details.length === 0 ? {} : { details };
  return { error: { code: fault.status, message: fault.message, status, ...detailsMember } };
}

/** The array stream sends errors as an array too. */
function geminiFault({ fault, call }: Refusal): { body: string; headers: Record<string, string> } {
  const body = pretty(wireFault(fault));
  const headers: Record<string, string> = {};
  if (fault.retryAfter !== undefined) headers['retry-after'] = String(fault.retryAfter);
  return { body: call.pathStream && !call.events ? `[${body}]` : body, headers };
}

function geminiUsage(counts: Counts): object {
  const prompt = inputTokens(counts);
  const text = prompt - counts.image - counts.audio;
  const details = [
    { modality: 'TEXT', tokenCount: text },
    { modality: 'IMAGE', tokenCount: counts.image },
    { modality: 'AUDIO', tokenCount: counts.audio },
  ];
  return {
    promptTokenCount: prompt,
    ...(counts.output === 0 ? {} : { candidatesTokenCount: counts.output }),
    totalTokenCount: prompt + counts.output + counts.reasoning,
    ...(counts.cacheRead === 0 ? {} : { cachedContentTokenCount: counts.cacheRead }),
    promptTokensDetails: details.filter(({ tokenCount }, index) => index === 0 || tokenCount > 0),
    ...(counts.cacheRead === 0 ? {} : { cacheTokensDetails: [{ modality: 'TEXT', tokenCount: counts.cacheRead }] }),
    ...(counts.reasoning === 0 ? {} : { thoughtsTokenCount: counts.reasoning }),
    serviceTier: 'standard',
  };
}

const blocked = {
  blockReason: 'SAFETY',
  safetyRatings: [
    { category: 'HARM_CATEGORY_SEXUALLY_EXPLICIT', probability: 'NEGLIGIBLE' },
    { category: 'HARM_CATEGORY_HATE_SPEECH', probability: 'NEGLIGIBLE' },
    { category: 'HARM_CATEGORY_HARASSMENT', probability: 'NEGLIGIBLE' },
    { category: 'HARM_CATEGORY_DANGEROUS_CONTENT', probability: 'HIGH' },
  ],
};

interface Candidate {
  readonly content?: { readonly parts: readonly object[]; readonly role: 'model' };
  readonly finishReason?: string;
  readonly index: number;
  readonly finishMessage?: string;
}

/** One response object: the whole answer, or a part of it in a stream. */
function responseOf(turn: Turn, candidates: readonly Candidate[] | undefined, counts: Counts): object {
  return {
    ...(candidates === undefined ? { promptFeedback: blocked } : { candidates }),
    ...(turn.modelRequest.directives.no_usage ? {} : { usageMetadata: geminiUsage(counts) }),
    modelVersion: turn.modelRequest.model,
    responseId: turn.id,
  };
}

function isBlocked(turn: Turn): boolean {
  return turn.script.choices[0]!.finish === 'refusal';
}

function wholeContent(turn: Turn): string {
  if (isBlocked(turn)) return pretty(responseOf(turn, undefined, turn.counts));
  const candidates = turn.script.choices.map((choice, index): Candidate => {
    const parts = [...stepsOf(turn, choice, index)].map((step) => step.part);
    const message = choice.calls.length === 0 ? {} : { finishMessage: 'Model generated function call(s).' };
    const content = parts.length === 0 ? {} : { content: { parts: merged(parts), role: 'model' as const } };
    return { ...content, finishReason: finishReasons[choice.finish], index, ...message };
  });
  return pretty(responseOf(turn, candidates, turn.counts));
}

interface Part {
  readonly text?: string;
  readonly thought?: true;
  readonly functionCall?: object;
  readonly thoughtSignature?: string;
}

interface Step {
  readonly part: Part;
  readonly text?: number;
  readonly reasoning?: number;
}

/** The parts of a candidate in stream order, texts in pieces. */
function* stepsOf(turn: Turn, choice: Choice, index: number): Generator<Step> {
  const { modelRequest } = turn;
  const count = modelRequest.directives.chunks;
  const shown = modelRequest.thoughtsShown || modelRequest.directives.thinking === true;
  if (shown) {
    for (const piece of piecesOf(choice.reasoning, count)) {
      yield { part: { text: piece, thought: true }, reasoning: piece.length };
    }
  }
  const hidden = shown ? 0 : choice.reasoning.length;
  const signature = choice.reasoning === '' ? {} : { thoughtSignature: seal(choice.reasoning) };
  for (const [at, call] of choice.calls.entries()) {
    const part = { functionCall: functionCall(turn, call, index, at), ...(at === 0 ? signature : {}) };
    yield { part, text: call.name.length + call.input.length, reasoning: at === 0 ? hidden : 0 };
  }
  let unspoken = hidden;
  for (const piece of piecesOf(choice.text, count)) {
    yield { part: { text: piece }, text: piece.length, reasoning: unspoken };
    unspoken = 0;
  }
  if (choice.calls.length === 0 && choice.reasoning !== '') {
    yield { part: { text: '', ...signature }, reasoning: unspoken };
  }
}

function functionCall(turn: Turn, call: ToolCall, choice: number, at: number): object {
  const id = `${turn.id.slice(-8)}${choice}${String(at).padStart(2, '0')}`;
  return { name: call.name, args: JSON.parse(call.input) as unknown, id };
}

/** Joins pieces of the same kind; a signed part stays separate, except that it signs the text before it. */
function merged(parts: readonly Part[]): Part[] {
  const whole: Part[] = [];
  for (const part of parts) {
    const last = whole.at(-1);
    const joins = last?.text !== undefined && part.text !== undefined && last.thought === part.thought;
    if (joins) whole[whole.length - 1] = { ...last, ...part, text: last.text + part.text };
    else whole.push(part);
  }
  return whole;
}

/**
 * JSON with a space after each colon, as the vendor formats its events. Line ends inside texts are escaped, so all others can
 * be removed.
 */
function spaced(value: object): string {
  return JSON.stringify(value, null, 1).replace(/\n */g, '');
}

function* streamContent(turn: Turn): Generator<Frame> {
  const { script, prompt } = turn;
  let first = true;
  const frame = (response: object): string => {
    const opening = first ? '[' : ',\r\n';
    first = false;
    return turn.call.events ? `data: ${spaced(response)}\r\n\r\n` : opening + pretty(response);
  };
  const closing: Frame[] = turn.call.events ? [] : [{ bytes: ']' }];
  if (isBlocked(turn)) {
    yield { bytes: frame(responseOf(turn, undefined, turn.counts)) };
    yield* closing;
    return;
  }
  let text = 0;
  let reasoning = 0;
  for (const [index, choice] of script.choices.entries()) {
    for (const step of stepsOf(turn, choice, index)) {
      text += step.text ?? 0;
      reasoning += step.reasoning ?? 0;
      const candidate: Candidate = { content: { parts: [step.part], role: 'model' }, index };
      const bytes = frame(responseOf(turn, [candidate], countsOf(prompt, { text, reasoning })));
      yield { bytes, text: step.text ?? 0, reasoning: step.reasoning ?? 0, chunk: true };
    }
    const content = { parts: [{ text: '' }], role: 'model' as const };
    const last: Candidate = { content, finishReason: finishReasons[choice.finish], index };
    yield { bytes: frame(responseOf(turn, [last], countsOf(prompt, { text, reasoning }))), ending: true };
  }
  yield* closing;
}
