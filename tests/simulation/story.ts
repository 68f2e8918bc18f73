/** What truly happened to one request, as its client and the vendors saw it. The gateway knows nothing of it; the oracle all. */
import type { CrashKind } from './disk.ts';
import type { Life } from './schedule.ts';
import type { Counts, Fraction, PriceList } from './tariff.ts';

/** One try with a vendor. */
export interface Try {
  readonly credential: string;
  /**
   * `waiting`: not handed to a socket. `flying`: on its way, or at work. `unsent`: it never got there. `refused`: turned away
   * without work. `broken`: no head came, and it may have run. `answered`: a 2xx head came.
   */
  state: 'waiting' | 'flying' | 'unsent' | 'refused' | 'broken' | 'answered';
  /** The vendor has it. */
  received: boolean;
  /** Stands on the vendor's bill. */
  billed: boolean;
}

export interface Story {
  readonly id: string;
  readonly account: string;
  readonly life: Life;
  /** The node that it came to. */
  readonly node: number;
  readonly list: PriceList;
  readonly ratio: Fraction;
  /** The gateway's estimate of the prompt. */
  readonly inputTokens: number;
  /** Output tokens that the first hold covers. */
  readonly heldOutput: number;
  readonly tries: Try[];
  /** Money was set aside for it. */
  admitted: boolean;
  /** How often its departure was in the journal before a try, and the journal's line at the last of them. */
  departed: number;
  departedLine: number;
  /** Output tokens that the gateway was shown, and as many as a crash cannot make it forget. */
  seen: number;
  noted: number;
  noting: { readonly seen: number; readonly line: number } | undefined;
  /** Usage that the gateway was told at the end, if it was. */
  told: Counts | undefined;
  /** A byte of a 2xx answer has reached the client. */
  firstByte: boolean;
  clientLeft: boolean;
  status: number;
  /** The exchange ended; the journal's line then. */
  ended: boolean;
  endedLine: number;
  /** What it must cost, once it has ended; undefined while it runs. */
  expected: bigint | undefined;
  /** What must be covered by the balance while it runs. */
  cover: bigint;
  /** Its process died before it was done. `safeLine`: the journal's last line that was left. */
  crash: { readonly kind: CrashKind; readonly safeLine: number } | undefined;
  /** The oracle has seen its rows. */
  settled: boolean;
}

export function newStory(
  given: Pick<Story, 'id' | 'account' | 'life' | 'node' | 'list' | 'ratio' | 'inputTokens' | 'heldOutput'>,
): Story {
  return {
    ...given,
    tries: [],
    admitted: false,
    departed: 0,
    departedLine: 0,
    seen: 0,
    noted: 0,
    noting: undefined,
    told: undefined,
    firstByte: false,
    clientLeft: false,
    status: 0,
    ended: false,
    endedLine: 0,
    expected: undefined,
    cover: 0n,
    crash: undefined,
    settled: false,
  };
}
