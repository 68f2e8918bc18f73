/** Encodes a conversation as instructions and input items for a responses upstream. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type {
  MediaPart,
  Part,
  ReasoningPart,
  SearchPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../../common/canonical/prompt.ts';
import { shortHash } from '../../../../common/encoding/hash.ts';
import { callsById, pairedTurns, withoutEmpty } from '../../../../common/encoding/history.ts';
import { isMedia } from '../../../../common/encoding/media.ts';
import { readableTurns } from '../../../../common/encoding/readable-media.ts';
import { legalCallId } from '../../../../common/encoding/tool-ids.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { ContentWriter, problemOf } from './content.ts';
import { annotationOf, searchItem } from './output-items.ts';

export interface EncodedInput {
  readonly instructions: string | undefined;
  readonly input: readonly JsonObject[];
}

/** Leading system turns become `instructions`; later ones keep their position. */
export function encodeInput(turns: readonly Turn[], namer: ToolNamer, context: EncodeContext): EncodedInput {
  const whole = withoutEmpty(readableTurns(turns, (part) => problemOf(part, context), context.dropped));
  const content = new ContentWriter(context);
  const { leading, rest } = splitLeading(whole, content);
  const writer = new InputWriter(namer, context, content, rest);
  const paired = pairedTurns(rest);
  for (const [index, turn] of paired.entries()) writer.turn(turn, paired[index + 1]);
  return { instructions: leading.length === 0 ? undefined : leading.join('\n\n'), input: writer.items };
}

/** A request needs some input: with system turns only, they are the input. */
function splitLeading(turns: readonly Turn[], content: ContentWriter): { leading: string[]; rest: readonly Turn[] } {
  const leading: string[] = [];
  let count = 0;
  for (const { role, parts } of turns) {
    const texts = parts.filter((part) => part.kind === 'text');
    const isPlain = texts.length === parts.length && !(content.takesMarks && texts.some(({ cache }) => cache));
    if (role !== 'system' || !isPlain) break;
    for (const text of texts) content.noteMark(text.cache);
    leading.push(texts.map(({ text }) => text).join('\n\n'));
    count++;
  }
  return count === turns.length ? { leading: [], rest: turns } : { leading, rest: turns.slice(count) };
}

class InputWriter {
  readonly items: JsonObject[] = [];
  readonly #namer: ToolNamer;
  readonly #context: EncodeContext;
  readonly #content: ContentWriter;
  /** Ids of custom (free-text) tool calls: their results are a different item. */
  readonly #customIds: ReadonlySet<string>;

  constructor(namer: ToolNamer, context: EncodeContext, content: ContentWriter, turns: readonly Turn[]) {
    this.#namer = namer;
    this.#context = context;
    this.#content = content;
    const calls = [...callsById(turns).values()];
    this.#customIds = new Set(calls.filter(({ custom }) => custom === true).map(({ id }) => id));
  }

  turn(turn: Turn, next: Turn | undefined): void {
    if (turn.name !== undefined) this.#context.dropped.drop('names');
    if (turn.role === 'assistant') this.#assistant(turn, next?.role === 'assistant');
    else if (turn.role === 'user') this.#user(turn.parts);
    else this.#system(turn.parts);
  }

  /** Upstreams of this protocol accept the role `developer`; some refuse `system`. */
  #system(parts: readonly Part[]): void {
    if (this.#context.traits.system_anywhere === false) {
      const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n');
      this.#pushMessage('user', [{ type: 'input_text', text: `<system-reminder>\n${text}\n</system-reminder>` }]);
    } else this.#pushMessage('developer', this.#content.parts(parts));
  }

  #user(parts: readonly Part[]): void {
    let pending: Part[] = [];
    for (const part of parts) {
      if (part.kind !== 'tool-result') {
        pending.push(part);
        continue;
      }
      this.#pushMessage('user', this.#content.parts(pending));
      pending = [];
      pending.push(...this.#result(part));
    }
    this.#pushMessage('user', this.#content.parts(pending));
  }

  /** Returns the media that the item cannot hold, for a user message. */
  #result(result: ToolResultPart): readonly MediaPart[] {
    const { output, rest } = this.#content.output(result);
    this.items.push({
      type:
        this.#customIds.has(result.callId) || result.custom === true
          ? 'custom_tool_call_output'
          : 'function_call_output',
      call_id: legalCallId(result.callId, 'any', this.#context.ownCallIds),
      output,
    });
    this.#content.noteMark(result.cache);
    return rest;
  }

  #assistant({ parts, phase }: Turn, goesOn: boolean): void {
    let pending: JsonObject[] = [];
    const images: MediaPart[] = [];
    const flush = () => {
      if (pending.length > 0) this.items.push(assistantMessage(pending, phase, this.items.length));
      pending = [];
    };
    const lastIndex = parts.findLastIndex(({ kind }) => kind === 'text' || kind === 'refusal' || kind === 'tool-call');
    for (const [index, part] of parts.entries()) {
      if (part.kind === 'text') pending.push(this.#outputText(part));
      else if (part.kind === 'refusal') pending.push({ type: 'refusal', refusal: part.text });
      else flush();
      // Upstreams refuse reasoning without an item after it.
      if (part.kind === 'reasoning') this.#reasoning(part, goesOn || index < lastIndex);
      if (part.kind === 'tool-call') this.#call(part);
      if (part.kind === 'search') this.#search(part);
      if (isMedia(part)) images.push(part);
    }
    flush();
    // No input item can hold generated images: a user message holds them.
    this.#pushMessage('user', this.#content.parts(images));
  }

  #outputText({ text, citations = [], cache }: TextPart): JsonObject {
    this.#content.noteMark(cache);
    const annotations = citations.flatMap((citation) => {
      const { start, end, url } = citation;
      if (url === undefined || start === undefined || end === undefined) return [];
      return annotationOf(citation, { start, end }) ?? [];
    });
    if (annotations.length < citations.length) this.#context.dropped.drop('citedHistory');
    return { type: 'output_text', text, annotations, logprobs: [] };
  }

  /** Only its maker can read it; without opaque state no upstream accepts it. */
  #reasoning({ text, opaqueState }: ReasoningPart, isFollowed: boolean): void {
    if (
      opaqueState === undefined ||
      opaqueState.maker !== this.#context.maker ||
      opaqueState.value === '' ||
      !isFollowed
    )
      return;
    const summary = text === '' ? [] : [{ type: 'summary_text', text }];
    this.items.push({ type: 'reasoning', summary, encrypted_content: opaqueState.value });
  }

  #call({ id, name, namespace, input, custom, cache }: ToolCallPart): void {
    this.#content.noteMark(cache);
    const callId = legalCallId(id, 'any', this.#context.ownCallIds);
    const head = { call_id: callId, name: this.#namer.nameFor(name, namespace) };
    this.items.push(
      custom === true
        ? { type: 'custom_tool_call', ...head, input }
        : { type: 'function_call', ...head, arguments: input },
    );
  }

  /** An upstream accepts only its own searches, by their ids. */
  #search(search: SearchPart): void {
    if (search.id.startsWith('ws_')) this.items.push(searchItem(search.id, search, 'completed'));
    else this.#context.dropped.drop('searchHistory');
  }

  #pushMessage(role: 'user' | 'developer', content: readonly JsonObject[]): void {
    if (content.length > 0) this.items.push({ type: 'message', role, content });
  }
}

/**
 * An output message, with `id` and `status` as the official schema requires. The id is generated: unique in the request, the
 * same in each later turn of the conversation, and in a form that no vendor uses, so that none looks for it in its store.
 * Calls and reasoning have none: their schemas do not require it, and encrypted reasoning is bound to its original id.
 */
function assistantMessage(content: readonly JsonObject[], phase: string | undefined, index: number): JsonObject {
  const id = `msg_gateway${shortHash(`${index} ${JSON.stringify(content)}`, 24)}`;
  return {
    id,
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content,
    ...(phase === undefined ? {} : { phase }),
  };
}
