/** Encodes turns as messages of Converse. */
import { isObject, type JsonObject, tryParse } from '../../core/json/json.ts';
import type { EncodeContext } from '../common/canonical/codec.ts';
import type { CacheMark, MediaPart, Part, ReasoningPart, ToolResultPart, Turn } from '../common/canonical/prompt.ts';
import { mergedTurns, noOutputText, pairedTurns, withoutEmpty } from '../common/encoding/history.ts';
import { documentTitle, isMedia, plainText } from '../common/encoding/media.ts';
import { readableTurns } from '../common/encoding/readable-media.ts';
import { legalCallId } from '../common/encoding/tool-ids.ts';
import type { ToolNamer } from '../common/encoding/tool-names.ts';

const imageFormats = new Map(['png', 'jpeg', 'gif', 'webp'].map((format) => [`image/${format}`, format]));
const maxCachePoints = 4;

export interface Messages {
  readonly system: readonly JsonObject[];
  readonly messages: readonly { readonly role: 'user' | 'assistant'; readonly content: readonly JsonObject[] }[];
  /** The conversation ends with tool results, and the reasoning before their calls is missing. */
  readonly lacksReasoning: boolean;
}

export function encodeTurns(turns: readonly Turn[], context: EncodeContext, namer: ToolNamer): Messages {
  const readable = readableTurns(turns, (part) => problemOf(part, context), context.dropped);
  const first = readable.findIndex(({ role }) => role !== 'system');
  const leading = first === -1 ? readable : readable.slice(0, first);
  const rest = readable.slice(leading.length).map(asUserTurn);
  const ordered = mergedTurns(pairedTurns(mergedTurns(withoutEmpty(rest, { blanks: true }))));
  const encoder = new Encoder(ordered, context, namer);
  const system = withoutEmpty(leading, { blanks: true }).flatMap(({ parts }) => encoder.content(parts));
  const messages = ordered.map(({ role, parts }) => ({
    role: role === 'assistant' ? ('assistant' as const) : ('user' as const),
    content: filled(encoder.content(parts)),
  }));
  const isMidStep = messages.at(-1)?.content.some((block) => 'toolResult' in block) === true;
  const last = messages.findLast(({ role }) => role === 'assistant');
  return {
    system,
    messages: framed(messages),
    lacksReasoning: isMidStep && !('reasoningContent' in (last?.content[0] ?? {})),
  };
}

function asUserTurn(turn: Turn): Turn {
  if (turn.role !== 'system') return turn;
  const parts = turn.parts.map((part) =>
    part.kind === 'text' ? { ...part, text: `<system-reminder>\n${part.text}\n</system-reminder>` } : part,
  );
  return { role: 'user', parts };
}

/** The first turn and the last are the user's. */
function framed(messages: Messages['messages']): Messages['messages'] {
  const user = (text: string) => [{ role: 'user' as const, content: [{ text }] }];
  return [
    ...(messages[0]?.role === 'user' ? [] : user('.')),
    ...messages,
    ...(messages.at(-1)?.role === 'assistant' ? user('Continue.') : []),
  ];
}

function filled(content: readonly JsonObject[]): readonly JsonObject[] {
  return content.length === 0 ? [{ text: '.' }] : content;
}

class Encoder {
  readonly #context: EncodeContext;
  readonly #namer: ToolNamer;
  /** A signature depends on those before it: the omitted part is always the beginning. */
  readonly #given: ReadonlySet<ReasoningPart>;
  #cachePoints = 0;

  constructor(turns: readonly Turn[], context: EncodeContext, namer: ToolNamer) {
    this.#context = context;
    this.#namer = namer;
    const all = turns.flatMap(({ parts }) => parts.filter((part) => part.kind === 'reasoning'));
    const lastForeign = all.findLastIndex(({ opaqueState: own }) => own?.maker !== context.maker || own.value === '');
    this.#given = new Set(all.slice(lastForeign + 1));
  }

  content(parts: readonly Part[]): JsonObject[] {
    return parts.flatMap((part) => [...this.#blocks(part), ...('cache' in part ? this.#cachePoint(part.cache) : [])]);
  }

  #cachePoint(mark: CacheMark | undefined): JsonObject[] {
    if (mark === undefined || this.#context.traits.cache_marks !== true) return [];
    this.#cachePoints += 1;
    if (this.#cachePoints > maxCachePoints) {
      this.#context.dropped.drop('cacheMarks');
      return [];
    }
    return [{ cachePoint: { type: 'default', ...(mark === 'long' ? { ttl: '1h' } : {}) } }];
  }

  #blocks(part: Part): JsonObject[] {
    if (isMedia(part)) return [mediaBlock(part)];
    switch (part.kind) {
      case 'text':
      case 'refusal':
        return [{ text: part.text }];
      case 'reasoning':
        return this.#given.has(part) ? [{ reasoningContent: reasoningOf(part) }] : [];
      case 'tool-call': {
        const { id, name, namespace, input, custom } = part;
        const read = custom === true ? { input } : tryParse(input);
        const toolUseId = legalCallId(id, 'messages', this.#context.ownCallIds);
        const toolUse = { toolUseId, name: this.#namer.nameFor(name, namespace) };
        return [{ toolUse: { ...toolUse, input: isObject(read) ? read : {} } }];
      }
      case 'tool-result':
        return [{ toolResult: this.#result(part) }];
      case 'search':
        return [];
    }
  }

  #result({ callId, parts, isError }: ToolResultPart): JsonObject {
    const content = parts.map((part) => (part.kind === 'text' ? { text: part.text } : mediaBlock(part)));
    return {
      toolUseId: legalCallId(callId, 'messages', this.#context.ownCallIds),
      content: content.length === 0 ? [{ text: noOutputText }] : content,
      ...(isError === true ? { status: 'error' } : {}),
    };
  }
}

function mediaBlock({ kind, source, name }: MediaPart): JsonObject {
  const text = plainText(source);
  const bytes =
    text === undefined && source.form === 'bytes' ? source.base64 : Buffer.from(text ?? '').toString('base64');
  if (kind === 'image' && source.form === 'bytes')
    return { image: { format: imageFormats.get(source.mediaType), source: { bytes } } };
  const title = documentTitle(name ?? 'document').replace(/[^\x20-\x7e]+/g, '-');
  return { document: { format: text === undefined ? 'pdf' : 'txt', name: title, source: { bytes } } };
}

function problemOf({ kind, source }: MediaPart, { traits: { inputs } }: EncodeContext): string | undefined {
  if (kind === 'audio' || kind === 'video') return `takes no ${kind}`;
  if (source.form === 'file') return 'cannot read files that another vendor keeps';
  if (kind === 'document' && plainText(source) !== undefined) return undefined;
  if (inputs !== undefined && !inputs.includes(kind)) return `takes no ${kind}s`;
  const isKnown =
    source.form === 'bytes' &&
    (kind === 'image' ? imageFormats.has(source.mediaType) : source.mediaType === 'application/pdf');
  if (isKnown) return undefined;
  return kind === 'image' ? 'takes JPEG, PNG, GIF and WebP images alone' : 'reads PDF and plain text documents alone';
}

function reasoningOf({ text, redacted, opaqueState }: ReasoningPart): JsonObject {
  const { value } = opaqueState!;
  return redacted === true ? { redactedContent: value } : { reasoningText: { text, signature: value } };
}
