/** Decodes the conversation: contents, their parts, and the pairing of tool results with calls. Pure. */

import { isObject, type JsonObject, listOf, textOf } from '../../../../../core/json/json.ts';
import type {
  MediaPart,
  OpaqueState,
  Part,
  ReasoningPart,
  TextPart,
  ToolResultPart,
  Turn,
} from '../../../../common/canonical/prompt.ts';
import { bytesSource, kindOfMedia, urlSource, withField } from '../../../../common/encoding/media.ts';
import { madeCallId } from '../../../../common/encoding/tool-ids.ts';
import { isLostSignature } from '../../../encoding/sealed-text.ts';
import { executedCode } from '../executed-code.ts';
import { decodeSlot } from '../signatures.ts';
import type { RequestDecoder } from './request-members.ts';

/** A call without a result so far. */
interface OpenCall {
  /** As the client sent it; undefined: the client sent none. */
  readonly clientId: string | undefined;
  readonly id: string;
  readonly name: string;
}

const readMembers = new Set([
  ...['text', 'thought', 'thoughtSignature', 'functionCall', 'functionResponse', 'inlineData', 'fileData'],
  ...['executableCode', 'codeExecutionResult'],
]);
const assistantRoles = new Set(['model', 'assistant']);
const userRoles = new Set(['user', 'function', 'tool']);

/** Decodes `contents` in order: results are paired with calls by id, otherwise by name, otherwise by place. */
export class ContentsDecoder {
  readonly #decoder: RequestDecoder;
  readonly #turns: Turn[] = [];
  readonly #waiting: OpenCall[] = [];
  readonly #ids = new Set<string>();
  /** Calls by the results that answer them. */
  readonly #paired = new Map<JsonObject, OpenCall | undefined>();
  /** Thoughts that may still receive a signature, and the calls of this content. */
  #thoughts: string[] = [];
  #calls = 0;

  constructor(decoder: RequestDecoder) {
    this.#decoder = decoder;
  }

  decode(contents: readonly unknown[]): Turn[] {
    for (const [index, content] of contents.entries()) {
      if (responsesIn(content).some((response) => !this.#paired.has(response))) this.#pair(contents, index);
      this.#content(content, `contents[${index}]`);
    }
    return this.#turns;
  }

  #content(content: unknown, path: string): void {
    if (!isObject(content)) throw this.#decoder.fault(path, 'be an object');
    const given = this.#decoder.list(content, 'parts', `${path}.parts`);
    const role = this.#roleOf(content, given, path);
    // A model's content may be empty; a user's content must not be.
    if (role === 'user' && given.length === 0) throw this.#decoder.fault(`${path}.parts`, 'not be empty');
    const parts: Part[] = [];
    this.#calls = 0;
    for (const [at, part] of given.entries()) {
      if (!isObject(part)) throw this.#decoder.fault(`${path}.parts[${at}]`, 'be an object');
      this.#part(part, parts, `${path}.parts[${at}]`);
    }
    this.#takeThoughts(parts, undefined);
    this.#turns.push({ role, parts });
  }

  /** Without a role, a content with a function call is the model's. */
  #roleOf(content: JsonObject, parts: readonly unknown[], path: string): Turn['role'] {
    const role = this.#decoder.text(content, 'role', `${path}.role`)?.toLowerCase() ?? '';
    if (role === '')
      return parts.some((part) => isObject(part) && part['functionCall'] !== undefined) ? 'assistant' : 'user';
    if (assistantRoles.has(role)) return 'assistant';
    if (userRoles.has(role)) return 'user';
    if (role === 'system') return 'system';
    throw this.#decoder.fault(`${path}.role`, 'be user or model');
  }

  #part(part: JsonObject, parts: Part[], path: string): void {
    this.#dropExtras(part, path);
    if (part['thought'] === true) {
      this.#thought(part, parts);
      return;
    }
    const opaqueState = this.#takeThoughts(parts, part['thoughtSignature']);
    const { text } = part;
    if (text !== undefined && text !== null) {
      if (typeof text !== 'string') throw this.#decoder.fault(`${path}.text`, 'be a string');
      if (text !== '' || opaqueState !== undefined) parts.push({ kind: 'text', text, ...stateMember(opaqueState) });
      return;
    }
    const call = this.#decoder.object(part, 'functionCall', `${path}.functionCall`);
    if (call !== undefined) this.#call(call, opaqueState, parts, `${path}.functionCall`);
    const response = this.#decoder.object(part, 'functionResponse', `${path}.functionResponse`);
    if (response !== undefined) parts.push(this.#result(response, `${path}.functionResponse`));
    const media = this.#media(part, path);
    if (media !== undefined) parts.push({ ...media, ...stateMember(opaqueState) });
    const code = executedCode(part);
    if (code !== undefined) parts.push({ kind: 'text', text: code });
  }

  #thought({ text, thoughtSignature }: JsonObject, parts: Part[]): void {
    if (typeof text === 'string') this.#thoughts.push(text);
    if (thoughtSignature !== undefined) this.#takeThoughts(parts, thoughtSignature);
  }

  #dropExtras(part: JsonObject, path: string): void {
    for (const member in part) if (!readMembers.has(member)) this.#decoder.drop(`${path}.${member}`, part[member]);
  }

  /** Adds the thoughts before a part to the turn, with their opaque states; returns the part's own opaque state. */
  #takeThoughts(parts: Part[], slot: unknown): OpaqueState | undefined {
    const entries = slot === undefined ? [] : (decodeSlot(slot, this.#decoder.open) ?? []);
    if (entries.length === 0 && typeof slot === 'string' && slot !== '' && !isLostSignature(slot))
      this.#decoder.onForeignReasoning?.();
    let text = this.#thoughts.join('');
    this.#thoughts = [];
    let own: OpaqueState | undefined;
    for (const { kind, content } of entries) {
      if (kind === 'own') own = content;
      else if (kind === 'redacted') parts.push({ kind: 'reasoning', text: '', opaqueState: content, redacted: true });
      else {
        parts.push({ kind: 'reasoning', text, opaqueState: content });
        text = '';
      }
    }
    if (text !== '') parts.push({ kind: 'reasoning', text } satisfies ReasoningPart);
    return own;
  }

  #call(call: JsonObject, opaqueState: OpaqueState | undefined, parts: Part[], path: string): void {
    const name = textOf(call['name']);
    if (name === undefined) throw this.#decoder.fault(`${path}.name`, 'be the name of the function');
    const args = this.#decoder.object(call, 'args', `${path}.args`) ?? {};
    const clientId = textOf(call['id']);
    // Repeated ids are made unique when results are paired: until then they are what the client was given.
    const id = clientId ?? madeCallId(this.#turns.length, this.#calls, name);
    this.#calls++;
    this.#ids.add(id);
    this.#waiting.push({ clientId, id, name });
    parts.push({ kind: 'tool-call', id, name, input: JSON.stringify(args), ...stateMember(opaqueState) });
  }

  #result(response: JsonObject, path: string): ToolResultPart {
    const name = textOf(response['name']);
    const clientId = textOf(response['id']);
    for (const member of ['willContinue', 'scheduling']) this.#decoder.drop(`${path}.${member}`, response[member]);
    // A call may stand in the same content, before its result.
    const call = this.#paired.get(response) ?? this.#namedCall(response);
    const { text, isError } = resultText(response['response']);
    const parts: (TextPart | MediaPart)[] = text === undefined ? [] : [{ kind: 'text', text }];
    for (const [at, part] of this.#decoder.list(response, 'parts', `${path}.parts`).entries()) {
      const media = isObject(part) ? this.#media(part, `${path}.parts[${at}]`) : undefined;
      if (media !== undefined) parts.push(media);
    }
    return {
      kind: 'tool-result',
      callId: call?.id ?? clientId ?? madeCallId(this.#turns.length, this.#waiting.length, name ?? ''),
      ...(name === undefined && call === undefined ? {} : { name: call?.name ?? name! }),
      parts,
      ...(isError ? { isError } : {}),
    };
  }

  /**
   * Pairs the results of these contents, up to the next calls. Some clients name a result otherwise than its call, by the id for
   * example: such results are paired by place with the calls that no other result names.
   */
  #pair(contents: readonly unknown[], from: number): void {
    const unnamed: JsonObject[] = [];
    for (const response of responsesUpToCall(contents, from)) {
      if (this.#paired.has(response)) continue;
      const call = this.#namedCall(response);
      if (call === undefined) unnamed.push(response);
      this.#paired.set(response, call);
    }
    for (const response of unnamed) {
      const clientId = textOf(response['id']);
      // Another result of a call that has one.
      if (clientId !== undefined && this.#ids.has(clientId)) continue;
      this.#paired.set(response, this.#waiting.shift());
    }
  }

  /** By id, the latest first, as some clients reuse ids; otherwise the first pending call with this name. */
  #namedCall(response: JsonObject): OpenCall | undefined {
    const waiting = this.#waiting;
    const [name, clientId] = [textOf(response['name']), textOf(response['id'])];
    let at = clientId === undefined ? -1 : waiting.findLastIndex((call) => call.clientId === clientId);
    if (at === -1 && clientId !== undefined && this.#ids.has(clientId)) return undefined;
    if (at === -1 && name !== undefined) at = waiting.findIndex((call) => call.name === name);
    if (at === -1 && name !== undefined) at = waiting.findIndex((call) => call.clientId === name);
    return at === -1 ? undefined : waiting.splice(at, 1)[0];
  }

  #media(part: JsonObject, path: string): MediaPart | undefined {
    const inline = this.#decoder.object(part, 'inlineData', `${path}.inlineData`);
    const file = this.#decoder.object(part, 'fileData', `${path}.fileData`);
    if (inline !== undefined) {
      const data = textOf(inline['data']);
      if (data === undefined) throw this.#decoder.fault(`${path}.inlineData.data`, 'be base64');
      const source = bytesSource(data, textOf(inline['mimeType']));
      withField(source, this.#decoder.name(`${path}.inlineData`));
      return { kind: kindOfMedia(source.mediaType), source, ...named(inline) };
    }
    if (file === undefined) return undefined;
    const uri = textOf(file['fileUri']);
    if (uri === undefined) throw this.#decoder.fault(`${path}.fileData.fileUri`, 'be an address');
    const declared = textOf(file['mimeType']);
    const typed = declared === undefined ? {} : { mediaType: declared };
    const source = /^(https?|data):/i.test(uri)
      ? urlSource(uri, declared)
      : ({ form: 'file', id: uri, ...typed } as const);
    const mediaType = 'mediaType' in source ? source.mediaType : declared;
    withField(source, this.#decoder.name(`${path}.fileData`));
    return { kind: kindOfMedia(mediaType ?? ''), source, ...named(file) };
  }
}

/** The results that follow, until the model calls again. */
function responsesUpToCall(contents: readonly unknown[], from: number): JsonObject[] {
  const responses: JsonObject[] = [];
  for (let index = from; index < contents.length; index++) {
    const content = contents[index];
    if (index > from && partsOf(content).some((part) => isObject(part['functionCall']))) break;
    responses.push(...responsesIn(content));
  }
  return responses;
}

function responsesIn(content: unknown): JsonObject[] {
  return partsOf(content).flatMap(({ functionResponse: response }) => (isObject(response) ? [response] : []));
}

function partsOf(content: unknown): JsonObject[] {
  return isObject(content) ? listOf(content['parts']).filter(isObject) : [];
}

function named(data: JsonObject): { name?: string } {
  const name = textOf(data['displayName']);
  return name === undefined ? {} : { name };
}

function stateMember(opaqueState: OpaqueState | undefined): { opaqueState?: OpaqueState } {
  return opaqueState === undefined ? {} : { opaqueState };
}

/**
 * A single member `output` or `result` is the function's output, a single `error` its failure; any other object is the output
 * itself.
 */
function resultText(response: unknown): { text: string | undefined; isError: boolean } {
  if (response === undefined || response === null) return { text: undefined, isError: false };
  if (!isObject(response)) return { text: encoded(response), isError: false };
  const members = Object.keys(response);
  if (members.length === 1) {
    const [only] = members;
    if (only === 'error' && response['error'] !== null) return { text: encoded(response['error']), isError: true };
    if (only === 'output' || only === 'result') return { text: encoded(response[only]), isError: false };
  }
  const { error } = response;
  const isError = error !== undefined && error !== null && error !== '' && error !== false;
  return { text: JSON.stringify(response), isError };
}

function encoded(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
