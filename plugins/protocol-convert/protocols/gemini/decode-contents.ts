/** Reads the conversation: contents, their parts, and which result belongs to which call. Pure. */
import type { Keepsake, MediaPart, Part, ReasoningPart, TextPart, ToolResultPart, Turn } from '../../canon.ts';
import { isObject, type JsonObject, textOf } from '../../json.ts';
import { bytesSource, kindOfMedia, placed, urlSource } from '../../wording/media.ts';
import { madeCallId } from '../../wording/tool-ids.ts';
import { executedCode } from './executed-code.ts';
import type { Reading } from './reading.ts';
import { readSlot } from './signatures.ts';

/** A call that waits for its result. */
interface OpenCall {
  /** As the client wrote it; undefined: it wrote none. */
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

/** Reads `contents` in order: results find their calls by id, else by name and order. */
export class ContentsReader {
  readonly #reading: Reading;
  readonly #turns: Turn[] = [];
  readonly #waiting: OpenCall[] = [];
  readonly #ids = new Set<string>();
  /** Texts of thoughts whose signature may still come, and the calls of this content. */
  #thoughts: string[] = [];
  #calls = 0;

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  read(contents: readonly unknown[]): Turn[] {
    for (const [index, content] of contents.entries()) this.#content(content, `contents[${index}]`);
    return this.#turns;
  }

  #content(content: unknown, path: string): void {
    if (!isObject(content)) throw this.#reading.fault(path, 'be an object');
    const given = this.#reading.list(content, 'parts', `${path}.parts`);
    const role = this.#roleOf(content, given, path);
    // A model may have said nothing; who asks must say something.
    if (role === 'user' && given.length === 0) throw this.#reading.fault(`${path}.parts`, 'not be empty');
    const parts: Part[] = [];
    this.#calls = 0;
    for (const [at, part] of given.entries()) {
      if (!isObject(part)) throw this.#reading.fault(`${path}.parts[${at}]`, 'be an object');
      this.#part(part, parts, `${path}.parts[${at}]`);
    }
    this.#takeThoughts(parts, undefined);
    this.#turns.push({ role, parts });
  }

  /** Without a role, whoever calls a function is the model. */
  #roleOf(content: JsonObject, parts: readonly unknown[], path: string): Turn['role'] {
    const role = this.#reading.text(content, 'role', `${path}.role`)?.toLowerCase() ?? '';
    if (role === '')
      return parts.some((part) => isObject(part) && part['functionCall'] !== undefined) ? 'assistant' : 'user';
    if (assistantRoles.has(role)) return 'assistant';
    if (userRoles.has(role)) return 'user';
    if (role === 'system') return 'system';
    throw this.#reading.fault(`${path}.role`, 'be user or model');
  }

  #part(part: JsonObject, parts: Part[], path: string): void {
    this.#dropExtras(part, path);
    const { text } = part;
    if (part['thought'] === true) {
      if (typeof text === 'string') this.#thoughts.push(text);
      if (part['thoughtSignature'] !== undefined) this.#takeThoughts(parts, part['thoughtSignature']);
      return;
    }
    const keepsake = this.#takeThoughts(parts, part['thoughtSignature']);
    if (text !== undefined && text !== null) {
      if (typeof text !== 'string') throw this.#reading.fault(`${path}.text`, 'be a string');
      if (text !== '' || keepsake !== undefined) parts.push({ kind: 'text', text, ...kept(keepsake) });
      return;
    }
    const call = this.#reading.object(part, 'functionCall', `${path}.functionCall`);
    if (call !== undefined) this.#call(call, keepsake, parts, `${path}.functionCall`);
    const response = this.#reading.object(part, 'functionResponse', `${path}.functionResponse`);
    if (response !== undefined) parts.push(this.#result(response, `${path}.functionResponse`));
    const media = this.#media(part, path);
    if (media !== undefined) parts.push({ ...media, ...kept(keepsake) });
    const code = executedCode(part);
    if (code !== undefined) parts.push({ kind: 'text', text: code });
  }

  #dropExtras(part: JsonObject, path: string): void {
    for (const member in part) if (!readMembers.has(member)) this.#reading.drop(`${path}.${member}`, part[member]);
  }

  /** Puts the thoughts that came before a part into the turn, with their own keepsakes; returns the part's own. */
  #takeThoughts(parts: Part[], slot: unknown): Keepsake | undefined {
    const entries = slot === undefined ? undefined : readSlot(slot, this.#reading.open);
    let text = this.#thoughts.join('');
    this.#thoughts = [];
    let own: Keepsake | undefined;
    for (const { kind, content } of entries ?? []) {
      if (kind === 'own') own = content;
      else {
        const redacted = kind === 'redacted';
        parts.push({
          kind: 'reasoning',
          text: redacted ? '' : text,
          keepsake: content,
          ...(redacted ? { redacted } : {}),
        });
        if (!redacted) text = '';
      }
    }
    if (text !== '') parts.push({ kind: 'reasoning', text } satisfies ReasoningPart);
    return own;
  }

  #call(call: JsonObject, keepsake: Keepsake | undefined, parts: Part[], path: string): void {
    const name = textOf(call['name']);
    if (name === undefined) throw this.#reading.fault(`${path}.name`, 'be the name of the function');
    const args = this.#reading.object(call, 'args', `${path}.args`) ?? {};
    const clientId = textOf(call['id']);
    const isFresh = clientId !== undefined && !this.#ids.has(clientId);
    const id = isFresh ? clientId : madeCallId(this.#turns.length, this.#calls, name);
    this.#calls++;
    this.#ids.add(id);
    this.#waiting.push({ clientId, id, name });
    parts.push({ kind: 'tool-call', id, name, input: JSON.stringify(args), ...kept(keepsake) });
  }

  #result(response: JsonObject, path: string): ToolResultPart {
    const name = textOf(response['name']);
    const clientId = textOf(response['id']);
    for (const member of ['willContinue', 'scheduling']) this.#reading.drop(`${path}.${member}`, response[member]);
    const call = this.#callFor(clientId, name);
    const { text, isError } = resultText(response['response']);
    const parts: (TextPart | MediaPart)[] = text === undefined ? [] : [{ kind: 'text', text }];
    for (const [at, part] of this.#reading.list(response, 'parts', `${path}.parts`).entries()) {
      const media = isObject(part) ? this.#media(part, `${path}.parts[${at}]`) : undefined;
      if (media !== undefined) parts.push(media);
    }
    return {
      kind: 'tool-result',
      callId: call?.id ?? clientId ?? madeCallId(this.#turns.length, this.#waiting.length, name ?? ''),
      ...(name === undefined && call === undefined ? {} : { name: name ?? call!.name }),
      parts,
      ...(isError ? { isError } : {}),
    };
  }

  /** By id, the latest first, as some clients use one again; else the first that waits under this name; else the first. */
  #callFor(clientId: string | undefined, name: string | undefined): OpenCall | undefined {
    const waiting = this.#waiting;
    let at = clientId === undefined ? -1 : waiting.findLastIndex((call) => call.clientId === clientId);
    if (at === -1 && clientId !== undefined && this.#ids.has(clientId)) return undefined;
    if (at === -1) at = waiting.findIndex((call) => call.name === name);
    if (at === -1 && name === undefined && waiting.length > 0) at = 0;
    return at === -1 ? undefined : waiting.splice(at, 1)[0];
  }

  #media(part: JsonObject, path: string): MediaPart | undefined {
    const inline = this.#reading.object(part, 'inlineData', `${path}.inlineData`);
    const file = this.#reading.object(part, 'fileData', `${path}.fileData`);
    if (inline !== undefined) {
      const data = textOf(inline['data']);
      if (data === undefined) throw this.#reading.fault(`${path}.inlineData.data`, 'be base64');
      const source = bytesSource(data, textOf(inline['mimeType']));
      placed(source, this.#reading.name(`${path}.inlineData`));
      return { kind: kindOfMedia(source.mediaType), source, ...named(inline) };
    }
    if (file === undefined) return undefined;
    const uri = textOf(file['fileUri']);
    if (uri === undefined) throw this.#reading.fault(`${path}.fileData.fileUri`, 'be an address');
    const declared = textOf(file['mimeType']);
    const typed = declared === undefined ? {} : { mediaType: declared };
    const source = /^(https?|data):/i.test(uri)
      ? urlSource(uri, declared)
      : ({ form: 'file', id: uri, ...typed } as const);
    const mediaType = 'mediaType' in source ? source.mediaType : declared;
    placed(source, this.#reading.name(`${path}.fileData`));
    return { kind: kindOfMedia(mediaType ?? ''), source, ...named(file) };
  }
}

function named(data: JsonObject): { name?: string } {
  const name = textOf(data['displayName']);
  return name === undefined ? {} : { name };
}

function kept(keepsake: Keepsake | undefined): { keepsake?: Keepsake } {
  return keepsake === undefined ? {} : { keepsake };
}

/** `output` or `result` alone say what the function gave, `error` that it failed; any other object is the output itself. */
function resultText(response: unknown): { text: string | undefined; isError: boolean } {
  if (response === undefined || response === null) return { text: undefined, isError: false };
  if (!isObject(response)) return { text: worded(response), isError: false };
  const members = Object.keys(response);
  if (members.length === 1) {
    const [only] = members;
    if (only === 'error' && response['error'] !== null) return { text: worded(response['error']), isError: true };
    if (only === 'output' || only === 'result') return { text: worded(response[only]), isError: false };
  }
  const { error } = response;
  const isError = error !== undefined && error !== null && error !== '' && error !== false;
  return { text: JSON.stringify(response), isError };
}

function worded(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
