/** Relayed answers under the name by which the client asked for the model; every other byte is the vendor's. */

import type { GatewayError } from '../../../core/contract/errors.ts';
import { asBuffer, isObject, type JsonObject, tryParseBytes } from '../../../core/json/json.ts';
import { applyEdits, findPlace, type Place } from '../../../core/json/splice.ts';
import type { UsageSeen } from '../../common/canonical/reply.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import { readFrame } from '../../common/wire/frame.ts';
import type { AnsweringProtocol, Reshape } from '../../common/wire/protocols.ts';
import type { Verdict } from '../../common/wire/usage-meter.ts';

const quote = 0x22;

/** Over the conversion that the answer has otherwise, if any, which gets the changed frames. */
export class AskedModel implements Reshape {
  readonly #protocol: AnsweringProtocol;
  readonly #name: string;
  #inner: Reshape | undefined;
  #lastFrame: Buffer | undefined;

  constructor(protocol: AnsweringProtocol, name: string, inner: Reshape | undefined) {
    this.#protocol = protocol;
    this.#name = name;
    this.#inner = inner;
  }

  get streamType(): string {
    return this.#inner?.streamType ?? 'text/event-stream';
  }

  get wholeType(): string | undefined {
    return this.#inner?.wholeType;
  }

  get hasRefused(): boolean {
    return this.#inner?.hasRefused === true;
  }

  get fail(): ((error: GatewayError) => Uint8Array | undefined) | undefined {
    const inner = this.#inner;
    return inner?.fail === undefined ? undefined : (error) => inner.fail?.(error);
  }

  get idleFrame(): Reshape['idleFrame'] {
    return this.#inner === undefined ? this.#protocol.idleFrame?.(this.#lastFrame) : this.#inner.idleFrame;
  }

  adopt(framing: Reshape | undefined): void {
    if (this.#inner === undefined) this.#inner = framing;
    else this.#inner.adopt?.(framing);
  }

  begin(report: UsageSeen): void {
    this.#inner?.begin?.(report);
  }

  whole(json: JsonObject, body: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const named = this.#edited(asBuffer(body), 0) ?? Buffer.from(JSON.stringify(this.#renamed(json)));
    if (this.#inner === undefined) return named;
    const read = named === body ? json : tryParseBytes(named);
    return this.#inner.whole(isObject(read) ? read : json, named);
  }

  frame(raw: Buffer, _read?: unknown, verdict: Verdict = 'pass'): Uint8Array | undefined {
    this.#lastFrame = raw;
    const named = this.#named(raw);
    if (this.#inner !== undefined) return this.#inner.frame(named, undefined, verdict);
    if (verdict === 'withhold') return undefined;
    return verdict === 'overdue' ? Buffer.from(this.#protocol.streamEnd ?? '') : named;
  }

  flush(): Uint8Array | undefined {
    return this.#inner?.flush?.();
  }

  comment(raw: Buffer): Uint8Array | undefined {
    return this.#inner === undefined ? raw : this.#inner.comment?.(raw);
  }

  finish(): Uint8Array | undefined {
    return this.#inner?.finish?.();
  }

  error(frames: string): string {
    return this.#inner?.error?.(frames) ?? frames;
  }

  #named(raw: Buffer): Buffer {
    const at = raw.indexOf('{');
    if (at === -1) return raw;
    const edited = this.#edited(raw, at);
    if (edited !== undefined) return edited;
    // Data of several lines.
    const read = readFrame(raw);
    return read === undefined ? raw : Buffer.from(formatFrame(JSON.stringify(this.#renamed(read.json)), read.event));
  }

  /** undefined: the JSON that begins at `from` is not in one piece. */
  #edited(bytes: Buffer, from: number): Buffer | undefined {
    try {
      for (const path of this.#places) {
        // The name alone is found many times faster than its place.
        if (!bytes.includes(`"${path.at(-1)}"`, from)) continue;
        const place = findPlace(bytes.subarray(from), path);
        if (place !== undefined && bytes[from + place.valueStart] === quote) return this.#replaced(bytes, from, place);
      }
      return bytes;
    } catch {
      return undefined;
    }
  }

  #replaced(bytes: Buffer, from: number, { valueStart, end }: Place): Buffer {
    const edit = { start: from + valueStart, end: from + end, text: JSON.stringify(this.#name) };
    return asBuffer(applyEdits(bytes, [edit]));
  }

  #renamed(json: JsonObject): JsonObject {
    return this.#places.reduce((changed, path) => renamed(changed, path, this.#name), json);
  }

  get #places(): readonly (readonly string[])[] {
    return this.#protocol.modelPlaces ?? [];
  }
}

function renamed(json: JsonObject, [name, ...rest]: readonly string[], text: string): JsonObject {
  const value = json[name!];
  if (rest.length === 0) return typeof value === 'string' ? { ...json, [name!]: text } : json;
  return isObject(value) ? { ...json, [name!]: renamed(value, rest, text) } : json;
}
