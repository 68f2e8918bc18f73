/** Relayed answers in which single members are the gateway's; every other byte is the vendor's. */

import type { GatewayError } from '../../../core/contract/errors.ts';
import { asBuffer, isObject, type JsonObject, tryParseBytes } from '../../../core/json/json.ts';
import type { UsageSeen } from '../../common/canonical/reply.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import { readFrame } from '../../common/wire/frame.ts';
import type { AnsweringProtocol, Reshape } from '../../common/wire/protocols.ts';
import type { Verdict } from '../../common/wire/usage-meter.ts';
import type { AnswerEdit } from './answer-edits.ts';

/** Over the conversion that the answer has otherwise, if any, which gets the changed frames. */
export class EditedAnswer implements Reshape {
  readonly #protocol: AnsweringProtocol;
  readonly #edits: readonly AnswerEdit[];
  #inner: Reshape | undefined;
  #lastFrame: Buffer | undefined;

  constructor(protocol: AnsweringProtocol, edits: readonly AnswerEdit[], inner: Reshape | undefined) {
    this.#protocol = protocol;
    this.#edits = edits;
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

  get pending(): Promise<void> | undefined {
    return this.#inner?.pending;
  }

  abandon(): void {
    this.#inner?.abandon?.();
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
    const edited = this.#edited(asBuffer(body), 0) ?? Buffer.from(JSON.stringify(this.#changed(json)));
    if (this.#inner === undefined) return edited;
    const read = edited === body ? json : tryParseBytes(edited);
    return this.#inner.whole(isObject(read) ? read : json, edited);
  }

  frame(raw: Buffer, _read?: unknown, verdict: Verdict = 'pass'): Uint8Array | undefined {
    if (this.#protocol.ignoresLastFrame !== true) this.#lastFrame = raw;
    const edited = this.#framed(raw);
    if (this.#inner !== undefined) return this.#inner.frame(edited, undefined, verdict);
    if (verdict === 'withhold') return undefined;
    return verdict === 'overdue' ? Buffer.from(this.#protocol.streamEnd ?? '') : edited;
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

  #framed(raw: Buffer): Buffer {
    const at = raw.indexOf('{');
    if (at === -1) return raw;
    const edited = this.#edited(raw, at);
    if (edited !== undefined) return edited;
    // Data of several lines.
    const read = readFrame(raw);
    return read === undefined ? raw : Buffer.from(formatFrame(JSON.stringify(this.#changed(read.json)), read.event));
  }

  /** undefined: the JSON that begins at `from` is not in one piece. */
  #edited(bytes: Buffer, from: number): Buffer | undefined {
    try {
      return this.#edits.reduce((changed, edit) => edit.bytes(changed, from), bytes);
    } catch {
      return undefined;
    }
  }

  #changed(json: JsonObject): JsonObject {
    return this.#edits.reduce((changed, edit) => edit.json(changed), json);
  }
}
