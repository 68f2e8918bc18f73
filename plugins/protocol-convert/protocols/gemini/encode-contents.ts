/** Words the conversation for an upstream: contents that alternate, begin with the user, and answer every call at once. Pure. */
import type { Keepsake, MediaPart, Part, ToolCallPart, ToolResultPart, Turn } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import { isObject, type JsonObject, tryParse } from '../../json.ts';
import { mergedTurns, pairedTurns, unshownText, withoutEmpty } from '../../wording/history.ts';
import { placeOf } from '../../wording/media.ts';
import type { ToolNamer } from '../../wording/tool-names.ts';
import { argsOf } from './answer-parts.ts';
import { lostSignature } from './signatures.ts';

export interface Conversation {
  readonly contents: readonly JsonObject[];
  /** Texts of the system turns that came first. */
  readonly system: readonly string[];
}

export function encodeConversation(turns: readonly Turn[], namer: ToolNamer, context: EncodeContext): Conversation {
  const first = turns.findIndex((turn) => turn.role !== 'system');
  const leading = first === -1 ? turns : turns.slice(0, first);
  const system = leading.flatMap((turn) => turn.parts.flatMap((part) => (part.kind === 'text' ? [part] : [])));
  for (const part of system) noteCache(part, context);
  const rest = (first === -1 ? [] : turns.slice(first)).map(systemAsUser);
  const writer = new ContentsWriter(namer, context);
  return {
    contents: writer.write(mergedTurns(pairedTurns(withoutEmpty(rest)))),
    system: system.map((part) => part.text).filter((text) => text !== ''),
  };
}

/** The protocol takes what the system says only in front: later words stand marked among the user's. */
function systemAsUser(turn: Turn): Turn {
  if (turn.role !== 'system') return turn;
  const parts = turn.parts.map(
    (part): Part =>
      part.kind === 'text' ? { ...part, text: `<system-reminder>\n${part.text}\n</system-reminder>` } : part,
  );
  return { role: 'user', parts };
}

function noteCache(part: { readonly cache?: unknown }, { losses, traits }: EncodeContext): void {
  if (part.cache !== undefined && traits.cache_marks !== true) losses.drop('cacheMarks');
}

class ContentsWriter {
  readonly #namer: ToolNamer;
  readonly #context: EncodeContext;
  /** Upstream names of the calls so far: results must name their function. */
  readonly #names = new Map<string, string>();

  constructor(namer: ToolNamer, context: EncodeContext) {
    this.#namer = namer;
    this.#context = context;
  }

  write(turns: readonly Turn[]): JsonObject[] {
    const contents: JsonObject[] = [];
    for (const turn of turns) {
      if (turn.name !== undefined) this.#context.losses.drop('names');
      if (turn.phase !== undefined) this.#context.losses.drop('phase');
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

  /** All results stand together and first; what they show follows them where the upstream takes only words in them. */
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
    const worded: JsonObject[] = [];
    let firstCall: Record<string, unknown> | undefined;
    // A signature that reached its client as reasoning belongs to the part behind it.
    let waiting: string | undefined;
    for (const part of parts) {
      if (part.kind === 'reasoning') {
        waiting = this.#own(part.keepsake) ?? waiting;
        continue;
      }
      for (const one of part.kind === 'tool-call' ? [this.#call(part)] : this.#plainPart(part)) {
        const signature = this.#own('keepsake' in part ? part.keepsake : undefined) ?? waiting;
        const signed = signature === undefined ? one : { ...one, thoughtSignature: signature };
        if (signature !== undefined) waiting = undefined;
        if (part.kind === 'tool-call') firstCall ??= signed;
        worded.push(signed);
      }
    }
    if (firstCall !== undefined) this.#signStep(firstCall, waiting);
    else if (waiting !== undefined) worded.push({ text: '', thoughtSignature: waiting });
    return worded;
  }

  /** The first call of a step must be signed; the upstream has a word for signatures that were lost. */
  #signStep(firstCall: Record<string, unknown>, waiting: string | undefined): void {
    if (firstCall['thoughtSignature'] !== undefined) return;
    if (waiting !== undefined) firstCall['thoughtSignature'] = waiting;
    else if (this.#context.traits.signatures !== false) firstCall['thoughtSignature'] = lostSignature;
  }

  #own(keepsake: Keepsake | undefined): string | undefined {
    return keepsake !== undefined && keepsake.maker === this.#context.maker && keepsake.value !== ''
      ? keepsake.value
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
    const texts: string[] = [];
    const shown: JsonObject[] = [];
    for (const part of result.parts) {
      noteCache(part, this.#context);
      if (part.kind === 'text') texts.push(part.text);
      else if (this.#takes(part)) shown.push(...this.#media(part));
      else {
        this.#context.losses.drop(part.source.form === 'file' ? 'file' : part.kind);
        texts.push(unshownText(part.kind));
      }
    }
    const holdsMedia = this.#context.traits.tool_result_media !== false;
    const media = shown.filter((part) => part['text'] === undefined);
    for (const part of shown) if (typeof part['text'] === 'string') texts.push(part['text']);
    if (!holdsMedia) beside.push(...media);
    const name = this.#names.get(result.callId) ?? this.#namer.nameFor(result.name ?? '');
    return {
      functionResponse: {
        ...this.#idOf(result.callId),
        name,
        response: responseOf(texts.join('\n'), result.isError === true),
        ...(holdsMedia && media.length > 0 ? { parts: media } : {}),
      },
    };
  }

  #plainPart(part: Part): JsonObject[] {
    switch (part.kind) {
      case 'text':
        noteCache(part, this.#context);
        if (part.citations !== undefined) this.#context.losses.drop('searchHistory');
        return part.text === '' && this.#own(part.keepsake) === undefined ? [] : [{ text: part.text }];
      case 'refusal':
        return [{ text: part.text }];
      case 'search':
        this.#context.losses.drop('searchHistory');
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

  /** Whether the model can see or hear it; text is always taken. */
  #takes({ kind, source }: MediaPart): boolean {
    const { inputs } = this.#context.traits;
    if (source.form === 'text') return true;
    if (source.form === 'url' || (source.form === 'file' && !source.id.includes('://'))) return false;
    return inputs === undefined || inputs.includes(kind);
  }

  #media(part: MediaPart): JsonObject[] {
    const { losses, traits } = this.#context;
    const { kind, source } = part;
    if (part.detail !== undefined && part.detail !== 'auto') losses.drop('detail');
    if (part.citations === true) losses.drop('documentCitations');
    if (source.form === 'text') return withContext(part, { text: titled(part, source.text) });
    if (source.form === 'bytes' && source.base64 === '' && part.transcript !== undefined)
      return [{ text: part.transcript }];
    if (traits.inputs !== undefined && !traits.inputs.includes(kind))
      losses.refuse(kind, `does not take ${kind} input`, placeOf(source));
    if (source.form === 'file') {
      // An address in the vendor's own storage; ids of other vendors are bare words.
      if (!source.id.includes('://'))
        losses.refuse('file', 'cannot read a file that is kept elsewhere', placeOf(source));
      // Without a name for the type of a page's film the upstream finds it out itself.
      const mimeType = source.mediaType?.endsWith('/*') ? undefined : source.mediaType;
      return withContext(part, {
        fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: source.id },
      });
    }
    if (source.form === 'url') return losses.refuse(kind, `takes ${kind} input only as bytes`, placeOf(source));
    return withContext(part, { inlineData: { mimeType: source.mediaType, data: source.base64 } });
  }
}

/** What the client says about a document stands before it. */
function withContext({ context }: MediaPart, worded: JsonObject): JsonObject[] {
  return context === undefined || context === '' ? [worded] : [{ text: context }, worded];
}

function titled({ name }: MediaPart, text: string): string {
  return name === undefined ? text : `${name}\n\n${text}`;
}

/** An object as it is; anything else as the output, or as the error. */
function responseOf(text: string, isError: boolean): JsonObject {
  if (isError) return { error: text };
  const json = text.trimStart().startsWith('{') ? tryParse(text) : undefined;
  return isObject(json) ? json : { output: text };
}
