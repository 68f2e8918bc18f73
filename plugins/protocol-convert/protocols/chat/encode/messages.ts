/**
 * Encodes turns as chat messages: tool results first, thoughts only for their own vendor, media where the protocol allows
 * them.
 */

import { type JsonObject, objectOf, tryParse } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type {
  MediaPart,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../../common/canonical/prompt.ts';
import { pairedTurns, withoutEmpty } from '../../../../common/encoding/history.ts';
import { isMedia } from '../../../../common/encoding/media.ts';
import { readableTurns } from '../../../../common/encoding/readable-media.ts';
import { legalCallId } from '../../../../common/encoding/tool-ids.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { detailMembers } from '../opaque-state.ts';
import { cacheMember, mediaParts, problemOf, textPart } from './parts.ts';

/** `instructions`: system texts that the gateway adds. */
export function encodeMessages(
  turns: readonly Turn[],
  context: EncodeContext,
  namer: ToolNamer,
  instructions: readonly string[],
): JsonObject[] {
  const instructionTurns: Turn[] =
    instructions.length === 0 ? [] : [{ role: 'system', parts: instructions.map(plain) }];
  const readable = readableTurns(turns, (part) => problemOf(part, context), context.dropped);
  const leading = readable.findIndex(({ role }) => role !== 'system');
  const first = leading === -1 ? readable.length : leading;
  const all = [...readable.slice(0, first), ...instructionTurns, ...readable.slice(first)];
  const shaped = withoutEmpty(pairedTurns(mergedSteps(all)));
  const writer = new MessageWriter(context, namer);
  for (const turn of context.traits.system_anywhere === false ? systemFirst(shaped) : shaped) writer.add(turn);
  return writer.end();
}

function plain(text: string): TextPart {
  return { kind: 'text', text };
}

/** A model's thoughts, text and calls of one step become one message, whatever number of turns held them. */
function mergedSteps(turns: readonly Turn[]): Turn[] {
  const merged: Turn[] = [];
  for (const turn of turns) {
    const before = merged.at(-1);
    if (before?.role === 'assistant' && turn.role === 'assistant' && (isStep(before) || isStep(turn)))
      merged[merged.length - 1] = { ...before, parts: [...before.parts, ...turn.parts] };
    else merged.push(turn);
  }
  return merged;
}

function isStep({ parts }: Turn): boolean {
  return parts.some(({ kind }) => kind === 'tool-call') || parts.every(({ kind }) => kind === 'reasoning');
}

/** For servers that accept one system message, in front: later ones become marked user text. */
function systemFirst(turns: readonly Turn[]): Turn[] {
  const leading = turns.findIndex(({ role }) => role !== 'system');
  const first = leading === -1 ? turns.length : leading;
  const system: Turn[] =
    first === 0 ? [] : [{ role: 'system', parts: turns.slice(0, first).flatMap(({ parts }) => parts) }];
  const rest = turns.slice(first).map((turn): Turn => (turn.role === 'system' ? asUser(turn) : turn));
  return [...system, ...rest];
}

function asUser({ parts }: Turn): Turn {
  const mark = (part: Part): Part =>
    part.kind === 'text' ? { ...part, text: `<system-reminder>\n${part.text}\n</system-reminder>` } : part;
  return { role: 'user', parts: parts.map(mark) };
}

class MessageWriter {
  readonly #context: EncodeContext;
  readonly #namer: ToolNamer;
  readonly #messages: JsonObject[] = [];
  /** Content that only a user message may hold: media from tools and from the model. */
  #shown: JsonObject[] = [];

  constructor(context: EncodeContext, namer: ToolNamer) {
    this.#context = context;
    this.#namer = namer;
  }

  add(turn: Turn): void {
    if (turn.phase !== undefined) this.#context.dropped.drop('phase');
    if (turn.role === 'assistant') this.#assistant(turn);
    else if (turn.role === 'system') this.#system(turn);
    else this.#user(turn);
  }

  end(): JsonObject[] {
    this.#flush([], {});
    return this.#messages;
  }

  #system({ parts, name }: Turn): void {
    const content = parts.flatMap((part) => this.#userPart(part));
    if (content.length > 0) this.#messages.push({ role: 'system', ...named(name), content: joined(content) });
  }

  #user({ parts, name }: Turn): void {
    for (const part of parts) if (part.kind === 'tool-result') this.#result(part);
    this.#flush(
      parts.flatMap((part) => this.#userPart(part)),
      named(name),
    );
  }

  /** Pending media, then the user's own parts. */
  #flush(said: readonly JsonObject[], name: JsonObject): void {
    const content = [...this.#shown, ...said];
    this.#shown = [];
    if (content.length > 0) this.#messages.push({ role: 'user', ...name, content: joined(content) });
  }

  #userPart(part: Part): JsonObject[] {
    if (part.kind === 'text') return [textPart(part, this.#context)];
    if (isMedia(part)) return mediaParts(part, this.#context);
    return part.kind === 'refusal' ? [{ type: 'text', text: part.text }] : [];
  }

  #result(result: ToolResultPart): void {
    const content: JsonObject[] = [];
    for (const part of result.parts) {
      if (part.kind === 'text') content.push(textPart(part, this.#context));
      else content.push(...this.#resultMedia(part, result));
    }
    if (result.isError === true) content.unshift({ type: 'text', text: 'Error:' });
    this.#messages.push({
      role: 'tool',
      tool_call_id: this.#legalId(result.callId),
      content: joined(content, result.isError === true ? ' ' : '\n'),
      ...cacheMember(result.cache, this.#context),
    });
  }

  /** In the tool message where the upstream accepts it, otherwise in a user message after all results. */
  #resultMedia(part: MediaPart, { name, callId }: ToolResultPart): JsonObject[] {
    const content = mediaParts(part, this.#context);
    if (this.#context.traits.tool_result_media === true || content.every(({ type }) => type === 'text')) return content;
    const tool = name === undefined ? `the call ${callId}` : `the tool "${name}"`;
    this.#shown.push({ type: 'text', text: `(${part.kind} given by ${tool}:)` }, ...content);
    return [{ type: 'text', text: `(${part.kind}: shown in the next message)` }];
  }

  #assistant({ parts, name }: Turn): void {
    this.#flush([], {});
    const calls = parts.filter((part) => part.kind === 'tool-call');
    const texts = parts.filter((part) => part.kind === 'text');
    const refusal = parts.filter((part) => part.kind === 'refusal').map(({ text }) => text);
    for (const part of parts) if (isMedia(part)) this.#made(part);
    if (parts.some(({ kind }) => kind === 'search')) this.#context.dropped.drop('searchHistory');
    if (texts.some(({ citations }) => citations !== undefined)) this.#context.dropped.drop('citedHistory');
    const content = texts.map((part) => textPart(part, this.#context));
    const thoughts = this.#thoughts(
      parts.filter((part) => part.kind === 'reasoning'),
      calls.length > 0,
    );
    const signature = this.#own(texts.findLast(({ opaqueState }) => opaqueState !== undefined)?.opaqueState);
    if (content.length + calls.length + refusal.length === 0 && Object.keys(thoughts).length === 0) return;
    this.#messages.push({
      role: 'assistant',
      ...named(name),
      content: content.length > 0 ? joined(content, '') : calls.length > 0 ? null : '',
      ...(refusal.length === 0 ? {} : { refusal: refusal.join('') }),
      ...thoughts,
      ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => this.#call(call)) }),
      ...extraMember(signature),
    });
  }

  /** An assistant message cannot hold generated images or audio. */
  #made(part: MediaPart): void {
    const content = mediaParts(part, this.#context);
    this.#shown.push({ type: 'text', text: `(${part.kind} of your answer before:)` }, ...content);
  }

  #call({ id, name, namespace, input, custom, opaqueState }: ToolCallPart): JsonObject {
    return {
      id: this.#legalId(id),
      type: 'function',
      function: {
        name: this.#namer.nameFor(name, namespace),
        arguments: custom === true ? JSON.stringify({ input }) : input,
      },
      ...extraMember(this.#own(opaqueState)),
    };
  }

  #legalId(id: string): string {
    const { traits, ownCallIds } = this.#context;
    return legalCallId(id, traits.tool_ids === 'nine' ? 'nine' : 'any', ownCallIds);
  }

  /** The vendor's own opaque state, if the upstream is that vendor. */
  #own(opaqueState: ReasoningPart['opaqueState']): string | undefined {
    return opaqueState?.maker === this.#context.maker ? opaqueState.value : undefined;
  }

  /** Opaque details for the vendor that made them; plain thoughts for models that need them in turns with tool calls. */
  #thoughts(parts: readonly ReasoningPart[], hasCalls: boolean): JsonObject {
    const { traits, dropped, maker } = this.#context;
    const own = parts
      .map(({ opaqueState }) => this.#own(opaqueState))
      .filter((value) => value !== undefined && value !== '');
    const details = detailMembers(own as string[]);
    if (traits.reasoning_replay !== true || !hasCalls) return details;
    const usable = parts.filter(({ opaqueState }) => opaqueState === undefined || opaqueState.maker === maker);
    if (parts.some((part) => part.text !== '' && !usable.includes(part))) dropped.drop('reasoningHistory');
    return { ...details, reasoning_content: usable.map(({ text }) => text).join('\n\n') };
  }
}

function extraMember(opaqueState: string | undefined): JsonObject {
  const extra = opaqueState === undefined ? undefined : objectOf(tryParse(opaqueState));
  return extra === undefined ? {} : { extra_content: extra };
}

/** Participant names must not contain spaces or any of `<|\/>`. */
function named(name: string | undefined): JsonObject {
  const legal = name?.replace(/[\s<|\\/>]+/g, '_').slice(0, 64);
  return legal === undefined || legal === '' ? {} : { name: legal };
}

/** Text alone is a string, which every server accepts; other content is a list of parts. */
function joined(content: readonly JsonObject[], between = '\n\n'): string | readonly JsonObject[] {
  const isPlain = content.every((part) => part['type'] === 'text' && Object.keys(part).length === 2);
  return isPlain ? content.map(({ text }) => text).join(between) : content;
}
