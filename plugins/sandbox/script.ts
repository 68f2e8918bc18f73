/** What the vendor says to an ask: thoughts, text, tool calls and how it ends. The same ask gets the same script. Pure. */
import type { Ask, ToolOffer } from './ask.ts';
import { sampleOf } from './sample.ts';
import { charactersPerToken, cutText, textOfLength, tokensOf } from './tokens.ts';

/** `stop`: all was said. `stop_sequence`: one of the client's own. `length`: the bound on tokens. */
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
  /** The answer; what is said instead of one when `finish` is `refusal`. */
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly finish: Finish;
  /** The stop sequence that was met. */
  readonly stop: string | undefined;
}

export interface Script {
  readonly choices: readonly Choice[];
  /** Produced altogether, in characters; tool names count with their input. */
  readonly textCharacters: number;
  readonly reasoningCharacters: number;
}

const longestEcho = 300;
export const refusalText = 'I am sorry, but I cannot help with that.';

export function writeScript(ask: Ask): Script {
  const choices: Choice[] = [];
  let textCharacters = 0;
  let reasoningCharacters = 0;
  for (let index = 0; index < ask.choices; index++) {
    const choice = writeChoice(ask, index);
    choices.push(choice);
    reasoningCharacters += choice.reasoning.length;
    textCharacters += choice.text.length + callCharacters(choice.calls);
  }
  return { choices, textCharacters, reasoningCharacters };
}

export function callCharacters(calls: readonly ToolCall[]): number {
  let sum = 0;
  for (const call of calls) sum += call.name.length + call.input.length;
  return sum;
}

function writeChoice(ask: Ask, index: number): Choice {
  const budget = ask.maxTokens === undefined ? Number.POSITIVE_INFINITY : ask.maxTokens * charactersPerToken;
  const reasoning = cutText(thoughtsOf(ask), budget);
  const left = budget - tokensOf(reasoning.length) * charactersPerToken;
  const ended = { reasoning, calls: [], stop: undefined };
  if (left <= 0) return { ...ended, text: '', finish: 'length' };
  if (ask.directives.refuse) return { ...ended, text: ask.refusesSilently ? '' : refusalText, finish: 'refusal' };
  if (ask.compact)
    return { ...ended, text: cutText(`So far the user said: ${echo(ask.userText)}.`, left), finish: 'stop' };
  const calls = callsOf(ask, index);
  if (calls.length > 0) {
    return callCharacters(calls) > left
      ? { ...ended, text: '', finish: 'length' }
      : { ...ended, text: '', calls, finish: 'tool_calls' };
  }
  return { ...ended, ...bounded(answerOf(ask, index), ask.stops, left) };
}

/** The text up to the first stop sequence or the bound, whichever comes first. */
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

function thoughtsOf(ask: Ask): string {
  const effort = ask.directives.thinking ? Math.max(ask.effort, 2) : ask.effort;
  if (effort === 0) return '';
  const sentences = [
    `The prompt says: ${echo(ask.userText)}.`,
    'I should answer it in one sentence.',
    'Nothing in it needs more than a look.',
    'I checked the answer once more.',
  ];
  return sentences.slice(0, effort).join(' ');
}

function callsOf(ask: Ask, choice: number): ToolCall[] {
  const offers = calledOffers(ask);
  return offers.map((offer, index) => {
    const salt = 1 + index + choice;
    const input =
      offer.kind === 'custom' ? `${echo(ask.userText)} (${salt})` : JSON.stringify(sampleOf(offer.schema, salt) ?? {});
    return { name: offer.name, kind: offer.kind, namespace: offer.namespace, input };
  });
}

/** Which tools are called, in order: the forced ones, or what a directive orders once for each user turn. */
function calledOffers(ask: Ask): ToolOffer[] {
  const { tool, tools } = ask.directives;
  const ordered = (tool !== undefined || tools !== undefined) && ask.results.length === 0;
  if (ask.tools.length === 0 || (ask.forced === undefined && !ordered)) return [];
  const allowed = ask.tools.filter(
    (offer) => ask.forced === undefined || ask.forced.length === 0 || ask.forced.includes(offer.name),
  );
  const chosen = ordered && tool !== undefined ? allowed.filter((offer) => offer.name === tool) : allowed;
  if (chosen.length === 0) return [];
  const count = ask.parallel && ordered ? (tools ?? 1) : 1;
  return Array.from({ length: count }, (_, index) => chosen[index % chosen.length]!);
}

function answerOf(ask: Ask, index: number): string {
  if (ask.directives.empty) return '';
  if (ask.form.kind === 'schema') return JSON.stringify(sampleOf(ask.form.schema, index + 1));
  const text = ask.form.kind === 'object' ? JSON.stringify({ answer: sentence(ask, index) }) : sentence(ask, index);
  const { tokens, chunks } = ask.directives;
  const wanted = tokens ?? (chunks === undefined ? undefined : Math.max(chunks, tokensOf(text.length)));
  return wanted === undefined || ask.form.kind === 'object' ? text : textOfLength(text, wanted);
}

function sentence(ask: Ask, index: number): string {
  const number = index === 0 ? '' : `(${index + 1}) `;
  const heard = ask.results.map((result) => `The tool ${result.name} answered: ${cutText(result.text, longestEcho)}`);
  if (heard.length > 0) return `${number}${heard.join(' ')} (${ask.model})`;
  const media = ask.media.length === 0 ? '' : ` I also see ${countMedia(ask.media)}.`;
  return `${number}You said: ${echo(ask.userText)}.${media} This is ${ask.model} in the sandbox.`;
}

function echo(text: string): string {
  return JSON.stringify(cutText(text, longestEcho));
}

function countMedia(media: Ask['media']): string {
  const names = ['image', 'audio', 'file'] as const;
  const counted = names.map((name) => ({ name, count: media.filter((medium) => medium === name).length }));
  return counted
    .filter(({ count }) => count > 0)
    .map(({ name, count }) => (count === 1 ? `1 ${name}` : `${count} ${name}s`))
    .join(' and ');
}
