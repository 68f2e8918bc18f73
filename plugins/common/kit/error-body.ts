/** Reads an upstream's error body in any form: an object, a list, a string, plain text or a page. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../core/json/json.ts';

/** Characters of a message that came without a JSON object around it. */
const maxMessageLength = 1_000;
/** Characters of a page that are searched for its message. */
const maxPageLength = 8_192;
/** Most entries of a list of errors; their messages are joined. */
const maxEntries = 5;

export interface ErrorBody {
  /** The object that holds the error; of a list, the entry that does. */
  readonly json: JsonObject | undefined;
  /** The bytes of `json`, where clients of the vendor's protocol can read them as an error. */
  readonly bytes: Uint8Array | undefined;
  readonly message: string | undefined;
}

/** Reads a scrubbed body. `isCut`: it is only the start of one, so JSON in it cannot be read. */
export function readErrorBody(body: Uint8Array, isCut: boolean): ErrorBody {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  const value = isCut ? undefined : tryParse(text);
  if (isObject(value)) return { json: value, bytes: body, message: messageIn(value) };
  if (Array.isArray(value)) return readList(value, text);
  if (typeof value === 'string') return { json: undefined, bytes: undefined, message: bounded(value) };
  const isJson = value !== undefined || (isCut && /^\s*[[{"]/.test(text));
  return { json: undefined, bytes: undefined, message: isJson ? undefined : bounded(plainText(text)) };
}

/** `[{"error": {…}}]`, as some of Google's addresses answer. */
function readList(list: readonly unknown[], text: string): ErrorBody {
  const json = list.filter(isObject).find((entry) => messageIn(entry) !== undefined);
  if (json === undefined) return { json, bytes: undefined, message: bounded(joined(list)) };
  if (!isObject(json['error'])) return { json, bytes: undefined, message: bounded(joined(list)) };
  const inner = list.length === 1 ? text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1) : JSON.stringify(json);
  return { json, bytes: Buffer.from(inner), message: messageIn(json) };
}

/** The object that describes the error, wherever this protocol has it. */
export function errorIn(payload: JsonObject): JsonObject {
  const response = objectOf(payload['response']);
  return objectOf(payload['error']) ?? objectOf(response?.['error']) ?? payload;
}

function messageIn(json: JsonObject): string | undefined {
  const inner = errorIn(json);
  return textOf(inner['message']) ?? messageOf(inner) ?? (inner === json ? undefined : messageOf(json));
}

/** `{"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}` is FastAPI's form of a validation error. */
function messageOf(json: JsonObject): string | undefined {
  const nested = ['message', 'detail', 'error', 'errors'].map((name) => json[name]);
  for (const value of [...nested, json['msg']]) {
    if (textOf(value) !== undefined) return textOf(value);
    const entries = joined(isObject(value) ? [value] : listOf(value));
    if (entries !== '') return bounded(entries);
  }
  return undefined;
}

function joined(entries: readonly unknown[]): string {
  return entries
    .slice(0, maxEntries)
    .map((entry) => textOf(entry) ?? (isObject(entry) ? entryMessage(entry) : ''))
    .filter((message) => message !== '')
    .join('; ');
}

function entryMessage(entry: JsonObject): string {
  const inner = errorIn(entry);
  const message = textOf(inner['msg']) ?? textOf(inner['message']) ?? textOf(inner['detail']) ?? textOf(inner['error']);
  if (message === undefined) return '';
  const path = listOf(inner['loc']).filter((part) => typeof part === 'string' || typeof part === 'number');
  const field = (path[0] === 'body' ? path.slice(1) : path).join('.');
  return field === '' ? message : `${field}: ${message}`;
}

/** The text of a page: its body up to the rule under which servers sign with their name; else its title. */
function plainText(text: string): string {
  if (!/^\s*</.test(text)) return text;
  const start = text.slice(0, maxPageLength);
  const title = /<title[^<>]{0,200}>([^<]{0,1000})/i.exec(start)?.[1] ?? '';
  const page = start
    .replace(/<(script|style|head)\b[^<>]{0,200}>.*?<\/\1\s{0,9}>/gis, ' ')
    .replace(/<!--.*?-->/gs, ' ')
    .split(/<hr\b/i, 1)[0]!
    .replace(/<[^<>]{0,500}>/g, ' ');
  return decodeEntities(page.trim() === '' ? title : page);
}

const entities = new Map([
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ['#39', "'"],
  ['nbsp', ' '],
  ['amp', '&'],
]);

function decodeEntities(text: string): string {
  return text.replace(/&(#?\w{1,8});/g, (whole, name: string) => entities.get(name.toLowerCase()) ?? whole);
}

/** One line without control characters; undefined when nothing is left. */
function bounded(text: string): string | undefined {
  const line = text.replace(/[\s\p{Cc}\ufffd]+/gu, ' ').trim();
  if (line === '') return undefined;
  if (line.length <= maxMessageLength) return line;
  return `${line.slice(0, maxMessageLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
