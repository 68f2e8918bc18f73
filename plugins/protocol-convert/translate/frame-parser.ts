/**
 * Parsing of a stream's frames. Most frames differ from the one before in one text alone: then only that text is parsed,
 * which costs a third. The result equals that of `readFrame` in every case. Pure.
 */
import { type JsonObject, tryParse } from '../../../core/json/json.ts';
import type { DeltaPath } from '../../common/canonical/codec.ts';
import { type ReadFrame, type RepeatedFrame, readFrame } from '../../common/wire/frame.ts';
import { closingQuote, isAround } from '../request/fast-scan.ts';

/** A longer frame is not worth remembering. */
const longestRemembered = 4096;
/** After so many frames in a row that nothing is gained by, a stream's frames are not compared any more. */
const mostMisses = 6;

interface Place {
  readonly before: string;
  readonly behind: string;
  /** `behind` without its spaces, if it has brackets and line ends alone: some vendors put a random number of spaces there. */
  readonly brackets: string | undefined;
  /** The object that holds the text, and its name there. */
  readonly holder: Record<string, unknown>;
  readonly name: string;
}

/** A frame around its text, which stands between `before` and `behind` with its quotes. */
class Template implements RepeatedFrame {
  readonly json: JsonObject;
  readonly event: string | undefined;
  readonly place: Place;
  text: string;
  bytes: number;

  constructor({ json, event }: ReadFrame, place: Place, text: string) {
    this.json = json;
    this.event = event;
    this.place = place;
    this.text = text;
    this.bytes = Buffer.byteLength(text);
  }

  say(text: string): void {
    this.text = text;
    this.place.holder[this.place.name] = text;
  }
}

export class FrameParser {
  readonly #paths: readonly DeltaPath[];
  #template: Template | undefined;
  #misses = 0;

  /** `paths`: see `UpstreamCodec.deltaPaths`. */
  constructor(paths: readonly DeltaPath[] = []) {
    this.#paths = paths;
  }

  /** The result is valid until the next frame is read: its objects may be used again. */
  read(raw: Buffer): ReadFrame | undefined {
    if (this.#paths.length === 0 || this.#misses >= mostMisses) return readFrame(raw);
    // Bytes that are not UTF-8 are the same replacement characters to `readFrame`.
    const frame = raw.toString('utf8');
    const text = this.#template && textIn(this.#template.place, frame);
    if (text !== undefined) return this.#repeated(this.#template!, text);
    const read = readFrame(raw);
    this.#misses++;
    this.#template = read === undefined ? undefined : templateOf(read, frame, this.#paths);
    return read;
  }

  #repeated(template: Template, text: string): ReadFrame {
    this.#misses = 0;
    const { json, event } = template;
    template.say(text);
    const bytes = Buffer.byteLength(text);
    const growth = bytes - template.bytes;
    template.bytes = bytes;
    return { json, event, growth, repeated: template };
  }
}

/** The text of a frame that is otherwise that of the template; undefined: it is another frame. */
function textIn(place: Place, frame: string): string | undefined {
  const start = place.before.length;
  const end = endOfText(place, frame);
  // The quotes: white space around a text would be no text, and a line end there would end the field.
  if (end < start + 2 || frame.charCodeAt(start) !== quote || frame.charCodeAt(end - 1) !== quote) return undefined;
  const text = tryParse(frame.slice(start, end), JSON.parse);
  return typeof text === 'string' ? text : undefined;
}

/** -1: it is another frame. */
function endOfText({ before, behind, brackets }: Place, frame: string): number {
  const end = frame.length - behind.length;
  if (isAround(frame, before.length, end, before, behind)) return end;
  if (brackets === undefined || !frame.startsWith(before)) return -1;
  const close = closingQuote(frame, before.length + 1) + 1;
  return withoutSpaces(frame.slice(close)) === brackets ? close : -1;
}

const quote = 0x22;
const withoutSpaces = (text: string): string => text.replaceAll(' ', '');

/** A template of the frame, if it has a text at one of the paths. */
function templateOf({ json }: ReadFrame, frame: string, paths: readonly DeltaPath[]): Template | undefined {
  if (frame.length > longestRemembered) return undefined;
  for (const path of paths) {
    const text = holderAt(json, path)?.[path.at(-1)!];
    if (typeof text === 'string' && text !== '') return templateAt(frame, path, text);
  }
  return undefined;
}

/** Finds the text's place: where another text becomes the value at the path, that value stands there and nowhere else. */
function templateAt(frame: string, path: DeltaPath, text: string): Template | undefined {
  const name = String(path.at(-1));
  const mark = `"${name}"`;
  const other = text === 'a' ? 'b' : 'a';
  for (let at = frame.indexOf(mark); at !== -1; at = frame.indexOf(mark, at + 1)) {
    const start = frame.indexOf('"', at + mark.length);
    if (start === -1) return undefined;
    const before = frame.slice(0, start);
    const behind = frame.slice(closingQuote(frame, start + 1) + 1);
    const changed = readFrame(Buffer.from(`${before}"${other}"${behind}`));
    const holder = changed && holderAt(changed.json, path);
    if (changed === undefined || holder?.[name] !== other) continue;
    const brackets = /^[ \r\n}\]]*$/.test(behind) ? withoutSpaces(behind) : undefined;
    return new Template(changed, { before, behind, brackets, holder, name }, text);
  }
  return undefined;
}

/** The object or list that holds the value at the path. */
function holderAt(json: JsonObject, path: DeltaPath): Record<string, unknown> | undefined {
  let value: unknown = json;
  for (let depth = 0; depth < path.length - 1; depth++) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, unknown>)[path[depth]!];
  }
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}
