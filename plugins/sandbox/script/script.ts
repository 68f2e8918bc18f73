/**
 * The vendor's answer to a request: thoughts, text, tool calls and finish reason. The same request gets the same script.
 * Pure.
 */
import type { ModelRequest, ToolOffer } from './model-request.ts';
import { namedTools } from './named-tools.ts';
import { sampleOf } from './sample.ts';
import { charactersPerToken, cutText, textOfLength, tokensOf } from './tokens.ts';

/** `stop`: complete. `stop_sequence`: one of the client's own. `length`: the limit of tokens. */
export type Finish = 'stop' | 'stop_sequence' | 'length' | 'tool_calls' | 'refusal';

export interface ToolCall {
  readonly name: string;
  readonly kind: ToolOffer['kind'];
  readonly namespace: string | undefined;
  /** JSON for a function, free text for a custom tool. */
  readonly input: string;
}

export interface Choice {
  readonly reasoning: string;
  /** The answer; the refusal's text if `finish` is `refusal`. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly finish: Finish;
  /** The stop sequence that was met. */
  readonly stop: string | undefined;
}

export interface Script {
  readonly choices: readonly Choice[];
  /** Produced in total, in characters; tool names count with their input. */
  readonly textCharacters: number;
  readonly reasoningCharacters: number;
}

const longestEcho = 300;
/** Models with such a name call a declared tool of their own accord. */
const eagerEnd = '-eager';
const refusalText = 'I am sorry, but I cannot help with that.';

export function scriptOf(modelRequest: ModelRequest): Script {
  const choices: Choice[] = [];
  let textCharacters = 0;
  let reasoningCharacters = 0;
  for (let index = 0; index < modelRequest.choices; index++) {
    const choice = choiceOf(modelRequest, index);
    choices.push(choice);
    reasoningCharacters += choice.reasoning.length;
    textCharacters += choice.text.length + callCharacters(choice.calls);
  }
  return { choices, textCharacters, reasoningCharacters };
}

function callCharacters(calls: readonly ToolCall[]): number {
  let sum = 0;
  for (const call of calls) sum += call.name.length + call.input.length;
  return sum;
}

function choiceOf(modelRequest: ModelRequest, index: number): Choice {
  const budget =
    modelRequest.maxTokens === undefined ? Number.POSITIVE_INFINITY : modelRequest.maxTokens * charactersPerToken;
  const reasoning = cutText(thoughtsOf(modelRequest), budget);
  const left = budget - tokensOf(reasoning.length) * charactersPerToken;
  const ended = { reasoning, calls: [], stop: undefined };
  if (left <= 0) return { ...ended, text: '', finish: 'length' };
  if (modelRequest.directives.refuse)
    return { ...ended, text: modelRequest.refusesSilently ? '' : refusalText, finish: 'refusal' };
  if (modelRequest.compact)
    return { ...ended, text: cutText(`So far the user said: ${echo(modelRequest.userText)}.`, left), finish: 'stop' };
  const calls = callsOf(modelRequest, index);
  if (calls.length > 0) {
    return callCharacters(calls) > left
      ? { ...ended, text: '', finish: 'length' }
      : { ...ended, text: '', calls, finish: 'tool_calls' };
  }
  return { ...ended, ...bounded(answerOf(modelRequest, index), modelRequest.stops, left) };
}

/** The text up to the first stop sequence or the limit, whichever comes first. */
function bounded(text: string, stops: readonly string[], characters: number): Pick<Choice, 'text' | 'finish' | 'stop'> {
  let at = text.length;
  let stop: string | undefined;
  for (const sequence of stops) {
    const found = sequence === '' ? -1 : text.indexOf(sequence);
    if (found < 0 || found >= at) continue;
    at = found;
    stop = sequence;
  }
  if (at > characters) return { text: cutText(text, characters), finish: 'length', stop: undefined };
  return { text: text.slice(0, at), finish: stop === undefined ? 'stop' : 'stop_sequence', stop };
}

function thoughtsOf(modelRequest: ModelRequest): string {
  const effort = modelRequest.directives.thinking ? Math.max(modelRequest.effort, 2) : modelRequest.effort;
  if (effort === 0) return '';
  const sentences = [
    `The prompt says: ${echo(modelRequest.userText)}.`,
    'I should answer it in one sentence.',
    'Nothing in it needs more than a look.',
    'I checked the answer once more.',
  ];
  return sentences.slice(0, effort).join(' ');
}

function callsOf(modelRequest: ModelRequest, choice: number): ToolCall[] {
  const offers = calledOffers(modelRequest);
  if (offers.length === 0)
    return namedTools(modelRequest).map(({ offer: { name, kind, namespace }, input }) => ({
      name,
      kind,
      namespace,
      input,
    }));
  return offers.map((offer, index) => {
    const salt = 1 + index + choice;
    const input =
      offer.kind === 'custom'
        ? `${echo(modelRequest.userText)} (${salt})`
        : JSON.stringify(sampleOf(offer.schema, salt) ?? {});
    return { name: offer.name, kind: offer.kind, namespace: offer.namespace, input };
  });
}

/** The tools to call, in order: the forced ones, or those from a directive or for an eager model, once for each user turn. */
function calledOffers(modelRequest: ModelRequest): ToolOffer[] {
  const { tool, tools } = modelRequest.directives;
  const isRequested = tool !== undefined || tools !== undefined || modelRequest.model.endsWith(eagerEnd);
  const ordered = isRequested && modelRequest.results.length === 0;
  if (modelRequest.tools.length === 0 || (modelRequest.forced === undefined && !ordered)) return [];
  const allowed = modelRequest.tools.filter(
    (offer) =>
      modelRequest.forced === undefined || modelRequest.forced.length === 0 || modelRequest.forced.includes(offer.name),
  );
  const chosen = ordered && tool !== undefined ? allowed.filter((offer) => offer.name === tool) : allowed;
  if (chosen.length === 0) return [];
  const count = modelRequest.parallel && ordered ? (tools ?? 1) : 1;
  return Array.from({ length: count }, (_, index) => chosen[index % chosen.length]!);
}

function answerOf(modelRequest: ModelRequest, index: number): string {
  if (modelRequest.directives.empty) return '';
  if (modelRequest.form.kind === 'schema') return JSON.stringify(sampleOf(modelRequest.form.schema, index + 1));
  const text =
    modelRequest.form.kind === 'object'
      ? JSON.stringify({ answer: sentence(modelRequest, index) })
      : sentence(modelRequest, index);
  const { tokens, chunks } = modelRequest.directives;
  const wanted = tokens ?? (chunks === undefined ? undefined : Math.max(chunks, tokensOf(text.length)));
  return wanted === undefined || modelRequest.form.kind === 'object' ? text : textOfLength(text, wanted);
}

function sentence(modelRequest: ModelRequest, index: number): string {
  const number = index === 0 ? '' : `(${index + 1}) `;
  const heard = modelRequest.results.map(
    (result) => `The tool ${result.name} answered: ${cutText(result.text, longestEcho)}`,
  );
  if (heard.length > 0) return `${number}${heard.join(' ')} (${modelRequest.model})`;
  const media = modelRequest.media.length === 0 ? '' : ` I also see ${countMedia(modelRequest.media)}.`;
  return `${number}You said: ${echo(modelRequest.userText)}.${media} This is ${modelRequest.model} in the sandbox.`;
}

function echo(text: string): string {
  return JSON.stringify(cutText(text, longestEcho));
}

function countMedia(media: ModelRequest['media']): string {
  const names = ['image', 'audio', 'file'] as const;
  const counted = names.map((name) => ({ name, count: media.filter((medium) => medium === name).length }));
  return counted
    .filter(({ count }) => count > 0)
    .map(({ name, count }) => (count === 1 ? `1 ${name}` : `${count} ${name}s`))
    .join(' and ');
}
