/** Sizes of answered text: the total, and the bytes that no usage report covers yet. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { TextSeen } from './usage-meter.ts';

export class TextMeter implements TextSeen {
  bytes = 0;
  frames = 0;
  reports = 0;
  #reportedBytes = 0;
  #reportedFrames = 0;

  add(bytes: number): void {
    if (bytes === 0) return;
    this.bytes += bytes;
    this.frames++;
  }

  /** Usage was reported: it covers everything up to here. */
  reported(): void {
    this.reports++;
    this.#reportedBytes = this.bytes;
    this.#reportedFrames = this.frames;
  }

  get bytesUnreported(): number {
    return this.bytes - this.#reportedBytes;
  }

  get framesUnreported(): number {
    return this.frames - this.#reportedFrames;
  }
}

/** Bytes of all texts in a JSON value: of strings under these names, and of everything under `opaque` names, as JSON. */
export function textBytesIn(value: unknown, names: ReadonlySet<string>, opaque?: ReadonlySet<string>): number {
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  if (Array.isArray(value)) {
    for (const member of value) sum += textBytesIn(member, names, opaque);
    return sum;
  }
  for (const name in value) {
    const member = (value as JsonObject)[name];
    if (typeof member === 'string') {
      if (names.has(name)) sum += Buffer.byteLength(member);
    } else if (opaque?.has(name)) sum += Buffer.byteLength(JSON.stringify(member) ?? '');
    else sum += textBytesIn(member, names, opaque);
  }
  return sum;
}
