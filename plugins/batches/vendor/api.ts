/** What the batch APIs of vendors have in common. Types. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { Wire } from './wire.ts';

/** One request of a vendor's batch. */
interface VendorLine {
  /** Our own id of it: letters, digits and hyphens. */
  readonly id: string;
  /** The body, as JSON on one line. */
  readonly body: string;
}

export interface VendorOrder {
  /** The gateway's id of the batch; the same at each try. */
  readonly name: string;
  /** The address that clients of the vendor call for one line. */
  readonly endpoint: string;
  readonly model: string;
  readonly lines: number;
  /** When the order was sent first, in wall-clock milliseconds. */
  readonly sentAt: number;
}

/** How a vendor ended a batch, and where its results are. */
export interface VendorResults extends JsonObject {
  readonly ended: 'completed' | 'cancelled' | 'expired';
  /** Names of files or addresses, in the vendor's own words. */
  readonly places: readonly string[];
}

export interface VendorState {
  readonly id: string;
  /** `refused`: no line was made; the text says why. Undefined: it runs. */
  readonly end: VendorResults | { readonly refused: string } | undefined;
}

/** A vendor's result for one line. */
export type VendorResult =
  | { readonly id: string; readonly status: number; readonly body: JsonObject }
  | { readonly id: string; readonly missed: 'cancelled' | 'expired' };

/** `undecided`: a batch at the vendor may be this order, which shows later. */
export type Found = VendorState | 'absent' | 'undecided';

export interface BatchApi {
  /** The wire protocol of the lines. */
  readonly protocol: string;
  /** Whether its lines call this address. */
  takes(endpoint: string): boolean;
  /** The header that carries the key, unless the provider names another. */
  readonly auth: { readonly header: string; readonly value: string };
  readonly headers?: Readonly<Record<string, string>>;
  /** Headers of the client's order that go with it. */
  readonly passedHeaders: readonly string[];
  readonly mostLines: number;
  readonly mostBytes: number;
  /** A line of the order, without its end. */
  lineOf(line: VendorLine, endpoint: string): string;
  /** The requests are uploaded before they are ordered; absent: they are part of the order. */
  readonly upload?: {
    send(wire: Wire, name: string, requests: AsyncIterable<Uint8Array>): Promise<string>;
    /** An upload that may have been finished before. */
    find(wire: Wire, name: string): Promise<string | undefined>;
    remove(wire: Wire, id: string): Promise<void>;
  };
  /** `requests`: the uploaded file, or its lines. */
  order(wire: Wire, order: VendorOrder, requests: string | AsyncIterable<Uint8Array>): Promise<VendorState>;
  /** The order, if the vendor has accepted it. `isOther`: a batch that is known to be another order's. */
  find(wire: Wire, order: VendorOrder, isOther: (id: string) => Promise<boolean>): Promise<Found>;
  get(wire: Wire, id: string): Promise<VendorState>;
  cancel(wire: Wire, id: string): Promise<void>;
  results(wire: Wire, end: VendorResults): AsyncIterable<VendorResult>;
  /** Deletes what the vendor keeps of it. */
  forget(wire: Wire, id: string, end: VendorResults | undefined): Promise<void>;
}
