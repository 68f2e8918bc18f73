/**
 * Encodes the conversation for an upstream: contents that alternate, start with the user, and answer all calls together.
 * Pure.
 */

import { isObject, type JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type {
  MediaPart,
  OpaqueState,
  Part,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../../common/canonical/prompt.ts';
import { mergedTurns, pairedTurns, withoutEmpty } from '../../../../common/encoding/history.ts';
import { readableTurns } from '../../../../common/encoding/readable-media.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { JsonTexts } from '../../../encoding/json-text.ts';
import { lostSignature } from '../../../encoding/sealed-text.ts';
import { argsOf } from './answer-parts.ts';

export interface Conversation {
  readonly contents: readonly JsonObject[];
  /** Texts of the leading system turns. */
  readonly system: readonly string[];
}

export function encodeConversation(turns: readonly Turn[], namer: ToolNamer, context: EncodeContext): Conversation {
  const readable = readableTurns(turns, (part) => problemOf(part, context), context.dropped);
  const first = readable.findIndex((turn) => turn.role !== 'system');
  const leading = first === -1 ? readable : readable.slice(0, first);
  const system = leading.flatMap((turn) => turn.parts.flatMap((part) => (part.kind === 'text' ? [part] : [])));
  for (const part of system) noteCache(part, context);
  const rest = (first === -1 ? [] : readable.slice(first)).map(systemAsUser);
  const writer = new ContentsWriter(namer, context);
  return {
    contents: writer.write(mergedTurns(pairedTurns(withoutEmpty(rest)))),
    system: system.map((part) => part.text).filter((text) => text !== ''),
  };
}

/** The protocol accepts system text only in front: later system turns become marked user text. */
function systemAsUser(turn: Turn): Turn {
  if (turn.role !== 'system') return turn;
  const parts = turn.parts.map(
    (part): Part =>
      part.kind === 'text' ? { ...part, text: `<system-reminder>\n${part.text}\n</system-reminder>` } : part,
  );
  return { role: 'user', parts };
}

function noteCache(part: { readonly cache?: unknown }, { dropped, traits }: EncodeContext): void {
  if (part.cache !== undefined && traits.cache_marks !== true) dropped.drop('cacheMarks');
}

class ContentsWriter {
  readonly #namer: ToolNamer;
  readonly #context: EncodeContext;
  /** Upstream names of the calls so far: results must name their function. */
  readonly #names = new Map<string, string>();
  readonly #results = new JsonTexts();

  constructor(namer: ToolNamer, context: EncodeContext) {
    this.#namer = namer;
    this.#context = context;
  }

  write(turns: readonly Turn[]): JsonObject[] {
    const contents: JsonObject[] = [];
    for (const turn of turns) {
      if (turn.name !== undefined) this.#context.dropped.drop('names');
      if (turn.phase !== undefined) this.#context.dropped.drop('phase');
      const parts = turn.role === 'assistant' ? this.#modelParts(turn.parts) : this.#userParts(turn.parts);
      if (parts.length === 0) continue;
      const role = turn.role === 'assistant' ? 'model' : 'user';
      const last = contents.at(-1);
      if (last?.['role'] === role) (last['parts'] as JsonObject[]).push(...parts);
      else contents.push({ role, parts });
    }
    if (contents[0]?.['role'] !== 'user') contents.unshift({ role: 'user', parts: [{ text: '' }] });
    return contents;
  }

  /** All results come first, together; their media follow where the upstream accepts only text in results. */
  #userParts(parts: readonly Part[]): JsonObject[] {
    const responses: JsonObject[] = [];
    const beside: JsonObject[] = [];
    const others: JsonObject[] = [];
    for (const part of parts) {
      if (part.kind === 'tool-result') responses.push(this.#response(part, beside));
      else others.push(...this.#plainPart(part));
    }
    return [...responses, ...beside, ...others];
  }

  #modelParts(parts: readonly Part[]): JsonObject[] {
    const encoded: Record<string, unknown>[] = [];
    // A signature that the client received with reasoning belongs to the part after it.
    let waiting: string | undefined;
    for (const part of parts) {
      const own = this.#own('opaqueState' in part ? part.opaqueState : undefined);
      if (part.kind === 'reasoning') waiting = own ?? waiting;
      for (const one of this.#modelPart(part)) {
        const signature = own ?? waiting;
        encoded.push(signature === undefined ? one : { ...one, thoughtSignature: signature });
        waiting = undefined;
      }
    }
    const firstCall = encoded.find((part) => part['functionCall'] !== undefined);
    if (firstCall !== undefined) this.#signStep(firstCall, waiting);
    else if (waiting !== undefined) encoded.push({ text: '', thoughtSignature: waiting });
    return encoded;
  }

  #modelPart(part: Part): JsonObject[] {
    return part.kind === 'tool-call' ? [this.#call(part)] : this.#plainPart(part);
  }

  /** The first call of a step must have a signature; the upstream accepts a fixed value for lost ones. */
  #signStep(firstCall: Record<string, unknown>, waiting: string | undefined): void {
    if (firstCall['thoughtSignature'] !== undefined) return;
    if (waiting !== undefined) firstCall['thoughtSignature'] = waiting;
    else if (this.#context.traits.signatures !== false) firstCall['thoughtSignature'] = lostSignature;
  }

  #own(opaqueState: OpaqueState | undefined): string | undefined {
    return opaqueState !== undefined && opaqueState.maker === this.#context.maker && opaqueState.value !== ''
      ? opaqueState.value
      : undefined;
  }

  #call(part: ToolCallPart): JsonObject {
    noteCache(part, this.#context);
    const name = this.#namer.nameFor(part.name, part.namespace);
    this.#names.set(part.id, name);
    const args = part.custom === true ? { input: part.input } : argsOf(part.input);
    return { functionCall: { ...this.#idOf(part.id), name, args } };
  }

  #idOf(id: string): { id?: string } {
    return this.#context.traits.tool_ids === 'none' ? {} : { id };
  }

  #response(result: ToolResultPart, beside: JsonObject[]): JsonObject {
    noteCache(result, this.#context);
    const { texts, media } = this.#textsAndMedia(result.parts);
    const holdsMedia = this.#context.traits.tool_result_media !== false;
    if (!holdsMedia) beside.push(...media);
    const name = this.#names.get(result.callId) ?? this.#namer.nameFor(result.name ?? '');
    return {
      functionResponse: {
        ...this.#idOf(result.callId),
        name,
        response: this.#responseOf(texts.join('\n'), result.isError === true),
        ...(holdsMedia && media.length > 0 ? { parts: media } : {}),
      },
    };
  }

  #textsAndMedia(parts: ToolResultPart['parts']): { texts: readonly string[]; media: readonly JsonObject[] } {
    const texts: string[] = [];
    const shown: JsonObject[] = [];
    for (const part of parts) {
      noteCache(part, this.#context);
      if (part.kind === 'text') texts.push(part.text);
      else shown.push(...this.#media(part));
    }
    for (const part of shown) if (typeof part['text'] === 'string') texts.push(part['text']);
    return { texts, media: shown.filter((part) => part['text'] === undefined) };
  }

  #plainPart(part: Part): JsonObject[] {
    switch (part.kind) {
      case 'text':
        noteCache(part, this.#context);
        if (part.citations !== undefined) this.#context.dropped.drop('citedHistory');
        return part.text === '' && this.#own(part.opaqueState) === undefined ? [] : [{ text: part.text }];
      case 'refusal':
        return [{ text: part.text }];
      case 'search':
        this.#context.dropped.drop('searchHistory');
        return [];
      case 'reasoning':
      case 'tool-call':
      case 'tool-result':
        return [];
      default:
        noteCache(part, this.#context);
        return this.#media(part);
    }
  }

  /**
   * An object as it is; anything else as the `output` or the `error` member. So are objects with `$` members: the upstream
   * reads `$ref` in an object as the name of one of the result's media, and refuses one that it does not find.
   */
  #responseOf(text: string, isError: boolean): JsonObject {
    if (isError) return { error: text };
    const json = text.trimStart().startsWith('{') ? this.#results.parse(text) : undefined;
    return isObject(json) && !(mayHaveDollar.test(text) && hasDollarMember(json)) ? json : { output: text };
  }

  #media(part: MediaPart): JsonObject[] {
    const { dropped } = this.#context;
    const { source } = part;
    if (part.detail !== undefined && part.detail !== 'auto') dropped.drop('detail');
    if (part.citations === true) dropped.drop('documentCitations');
    if (source.form === 'text') return withContext(part, { text: titled(part, source.text) });
    // One of the protocol's hosts refuses the protocol's own members for names.
    if (part.name !== undefined) dropped.drop('documentNames');
    if (isTranscript(part)) return [{ text: part.transcript }];
    if (source.form === 'file') return withContext(part, { fileData: fileData(source) });
    if (source.form === 'url') return [];
    return withContext(part, { inlineData: { mimeType: source.mediaType, data: source.base64 } });
  }
}

/** Why the model does not accept the medium; text is always accepted. */
function problemOf(part: MediaPart, { traits }: EncodeContext): string | undefined {
  const { kind, source } = part;
  if (source.form === 'text' || isTranscript(part)) return undefined;
  if (traits.inputs !== undefined && !traits.inputs.includes(kind)) return `does not take ${kind} input`;
  // A URI in the vendor's own storage; ids of other vendors have no scheme.
  if (source.form === 'file' && !source.id.includes('://')) return 'cannot read a file that is kept elsewhere';
  return source.form === 'url' ? `takes ${kind} input only as bytes` : undefined;
}

/** Audio of an answer that has come back without its bytes. */
function isTranscript(part: MediaPart): part is MediaPart & { readonly transcript: string } {
  return part.source.form === 'bytes' && part.source.base64 === '' && part.transcript !== undefined;
}

function fileData(source: Extract<MediaPart['source'], { form: 'file' }>): JsonObject {
  // Without a media type, the upstream determines the type of a linked video itself.
  const mimeType = source.mediaType?.endsWith('/*') ? undefined : source.mediaType;
  return { ...(mimeType === undefined ? {} : { mimeType }), fileUri: source.id };
}

/** A dollar sign may be escaped. */
const mayHaveDollar = /\$|\\u0024/;

function hasDollarMember(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasDollarMember);
  return (
    isObject(value) && Object.entries(value).some(([name, member]) => name.startsWith('$') || hasDollarMember(member))
  );
}

/** What the client says about a document stands before it. */
function withContext({ context }: MediaPart, encoded: JsonObject): JsonObject[] {
  return context === undefined || context === '' ? [encoded] : [{ text: context }, encoded];
}

function titled({ name }: MediaPart, text: string): string {
  return name === undefined ? text : `${name}\n\n${text}`;
}
