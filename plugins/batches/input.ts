/** Reads the input of a batch line by line, in bounded memory, and checks each line. */
import { isObject, type JsonObject, tryParse } from '../../core/json/json.ts';
import { type InputError, type InputLine, modelInEndpoint } from './batch.ts';

export interface InputLimits {
  readonly lines: number;
  readonly lineBytes: number;
}

const mostErrors = 100;
/** Lines that are written to the database at once. */
const groupLines = 500;
const longestId = 256;
const newline = 0x0a;

interface FoundLine {
  readonly firstByte: number;
  readonly bytes: Buffer | 'too long';
}

/** Lines without the line's end; empty ones are left out. */
export async function* linesOf(body: AsyncIterable<Uint8Array>, mostBytes: number): AsyncGenerator<FoundLine> {
  let pieces: Buffer[] = [];
  let length = 0;
  let start = 0;
  let at = 0;
  const taken = (): FoundLine => ({
    firstByte: start,
    bytes: length > mostBytes ? 'too long' : Buffer.concat(pieces, length),
  });
  const add = (piece: Buffer) => {
    length += piece.length;
    if (length <= mostBytes) pieces.push(piece);
    else pieces = [];
  };
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, from)) {
      add(bytes.subarray(from, end));
      if (length > 0) yield taken();
      [pieces, length, from] = [[], 0, end + 1];
      start = at + from;
    }
    add(Buffer.from(bytes.subarray(from)));
    at += bytes.length;
  }
  if (length > 0) yield taken();
}

/** The request of a line. */
export interface LineRequest {
  readonly customId: string;
  readonly body: JsonObject;
}

/** The line's request, or its fault. `endpoint`: that of the batch. */
export function requestIn(text: string, endpoint: string): LineRequest | Omit<InputError, 'line'> {
  const json = tryParse(text);
  if (!isObject(json)) return wrong('invalid_json_line', 'This line is not a JSON object.', null);
  const { custom_id: customId, method, url, body } = json;
  if (typeof customId !== 'string' || customId === '' || customId.length > longestId || customId.includes('\0'))
    return wrong(
      'missing_required_parameter',
      `"custom_id" must be a text of 1 to ${longestId} characters.`,
      'custom_id',
    );
  if (method !== 'POST') return wrong('invalid_method', '"method" must be "POST".', 'method');
  if (url !== endpoint) return wrong('invalid_url', `"url" must be the endpoint of the batch, ${endpoint}.`, 'url');
  if (!isObject(body)) return wrong('missing_required_parameter', '"body" must be an object.', 'body');
  if (modelInEndpoint(endpoint) === undefined && (typeof body['model'] !== 'string' || body['model'] === ''))
    return wrong('missing_required_parameter', '"body.model" must name a model.', 'body.model');
  if (body['stream'] !== undefined && body['stream'] !== false && body['stream'] !== null)
    return wrong('invalid_request', 'Lines of batches are not streamed.', 'body.stream');
  return { customId, body };
}

function wrong(code: string, message: string, param: string | null): Omit<InputError, 'line'> {
  return { code, message, param };
}

/** Passes the checked lines on in groups. Resolves with their number and their model, if it is one, or with the faults. */
export async function readInput(
  body: AsyncIterable<Uint8Array>,
  endpoint: string,
  limits: InputLimits,
  take: (lines: readonly InputLine[]) => Promise<void>,
): Promise<{ readonly total: number; readonly model: string | undefined; readonly errors: readonly InputError[] }> {
  const reading = new Reading(endpoint, limits);
  for await (const line of linesOf(body, limits.lineBytes)) {
    reading.add(line);
    if (reading.isFull) break;
    if (reading.group.length < groupLines) continue;
    await take(reading.group);
    reading.group = [];
  }
  const { total, errors, group } = reading;
  if (total === 0) errors.push({ line: null, ...wrong('empty_file', 'The input has no line.', null) });
  if (errors.length === 0 && group.length > 0) await take(group);
  const [model] = reading.models.size === 1 ? reading.models : [];
  return { total, model, errors };
}

/** The lines that were read so far. */
class Reading {
  readonly errors: InputError[] = [];
  group: InputLine[] = [];
  /** Two of them at most: more do not matter. */
  readonly models = new Set<string>();
  total = 0;
  readonly #endpoint: string;
  readonly #limits: InputLimits;
  readonly #seen = new Set<string>();

  constructor(endpoint: string, limits: InputLimits) {
    this.#endpoint = endpoint;
    this.#limits = limits;
  }

  /** Nothing more needs to be read. */
  get isFull(): boolean {
    return this.total > this.#limits.lines || this.errors.length >= mostErrors;
  }

  add({ firstByte, bytes }: FoundLine): void {
    // An empty line of a file with CRLF.
    if (bytes.length === 1 && bytes[0] === 0x0d) return;
    this.total += 1;
    const number = this.total;
    if (number > this.#limits.lines) {
      this.errors.push({ line: null, ...tooMany(this.#limits) });
      return;
    }
    const found = checked(bytes, this.#endpoint, this.#limits, this.#seen);
    if ('code' in found) this.errors.push({ line: number, ...found });
    else if (this.errors.length === 0) {
      if (this.models.size < 2) this.models.add(modelInEndpoint(this.#endpoint) ?? (found.body['model'] as string));
      this.group.push({ number, customId: found.customId, firstByte, bytes: bytes.length });
    }
  }
}

function tooMany({ lines }: InputLimits): Omit<InputError, 'line'> {
  return wrong('too_many_lines', `A batch has at most ${lines} lines.`, null);
}

function checked(
  bytes: Buffer | 'too long',
  endpoint: string,
  { lineBytes }: InputLimits,
  seen: Set<string>,
): LineRequest | Omit<InputError, 'line'> {
  if (bytes === 'too long') return wrong('line_too_long', `A line has at most ${lineBytes} bytes.`, null);
  const found = requestIn(bytes.toString('utf8'), endpoint);
  if ('code' in found) return found;
  if (seen.has(found.customId))
    return wrong('duplicate_custom_id', 'Another line has the same "custom_id".', 'custom_id');
  seen.add(found.customId);
  return found;
}
