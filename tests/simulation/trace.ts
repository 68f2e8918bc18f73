/** What truly happened to one request, as its client and the vendors saw it. The gateway knows nothing of it; the oracle all. */
import type { Cached } from './cached.ts';
import type { CrashKind } from './disk.ts';
import type { Life } from './schedule.ts';
import type { Counts, Fraction, PriceList } from './tariff.ts';

/** The usage of an answer, as it was reported to the gateway. */
export interface ReportedUsage {
  readonly usage: Counts;
  /** Its vendor has counted nothing: it was made of what was seen. */
  readonly isGuess: boolean;
  /** The answer came to its end. */
  readonly isWhole: boolean;
  /** Output tokens that were seen of its text. */
  readonly seen: number;
}

/** One try with a vendor. */
export interface Try {
  readonly provider: string;
  readonly credential: string;
  /** Its vendor's name of the model, and what that model costs. */
  readonly target: string;
  /** Prices of the model that its vendor runs. */
  list: PriceList;
  /** Virtual time at which it began. */
  readonly at: number;
  /** It runs on a branch of its own: another may run beside it. */
  readonly isRacing: boolean;
  /** Its answer is read on when no one wants it any more, within bounds. */
  readonly isDrained: boolean;
  /**
   * `waiting`: not handed to a socket. `flying`: on its way, or at work. `unsent`: it never got there. `refused`: turned away
   * without work. `broken`: no head came, and it may have run. `answered`: a 2xx head came.
   */
  state: 'waiting' | 'flying' | 'unsent' | 'refused' | 'broken' | 'answered';
  /** Its departure was in the journal before it, and nothing held it back since. */
  hasLeft: boolean;
  /** Number of its timeline's tries that were asked to depart up to it; 0: it was not. */
  departure: number;
  /** The vendor has it. */
  received: boolean;
  /** Stands on the vendor's bill. */
  billed: boolean;
  /** What the vendor asks for it so far, where that is known. */
  bill: Counts | undefined;
  /** A head has come. */
  headed: boolean;
  /** It has failed, was cut off, or its answer was read as far as anybody wanted. */
  over: boolean;
  /** For a racing try: output tokens of its answer that were shown, and its reported usage. */
  seen: number;
  reported: ReportedUsage | undefined;
  /** A vendor has reported it itself. */
  isExact: boolean;
}

export function newTry(
  given: Pick<Try, 'provider' | 'credential' | 'target' | 'list' | 'at' | 'isRacing' | 'isDrained'>,
): Try {
  const nothingYet = { hasLeft: false, received: false, billed: false, bill: undefined, headed: false, over: false };
  return { ...given, ...nothingYet, state: 'waiting', departure: 0, seen: 0, reported: undefined, isExact: false };
}

export interface Trace {
  readonly id: string;
  readonly account: string;
  readonly life: Life;
  /** The node that it came to. */
  readonly node: number;
  /** Prices of the model that was asked last. */
  list: PriceList;
  readonly ratio: Fraction;
  /** The gateway's estimate of the prompt. */
  readonly inputTokens: number;
  /** Output tokens that the first hold covers. */
  readonly heldOutput: number;
  /** After how much silence a second try may run beside the first; undefined: never. */
  readonly hedgeAfterMs: number | undefined;
  /** Nothing but an answer comes of it, so it may be tried again where a try may have run. */
  readonly isPure: boolean;
  /** What it asks for beside tokens, which a crash is charged by; absent: nothing. */
  readonly counted?: Counts | undefined;
  /** Its answer comes as a stream. */
  readonly stream: boolean;
  /** Mark of its conversation; odd: it offers tools. undefined: it belongs to none. */
  readonly mark: number | undefined;
  /** What it names beside its own model, by the field; undefined: nothing. */
  readonly names: { readonly model: string; readonly field: string } | undefined;
  readonly tries: Try[];
  /** The first racing try that answered. */
  winner: Try | undefined;
  /** The one that has failed last. */
  lastFailed: Try | undefined;
  /** The one that the client pays for, if it does. */
  payer: Try | undefined;
  /** It was answered from the cache. */
  served: Cached | undefined;
  /** Checks have refused its prompt beside it, and nothing is to be paid. */
  isSpared: boolean;
  /** Money was set aside for it. */
  admitted: boolean;
  /** How often its departure was in the journal before a try, and the journal's line at the first of them. */
  departed: number;
  departedLine: number;
  /** How often one was asked to depart, whatever became of it. */
  departures: number;
  /** Output tokens that the gateway was shown, and as many as a crash cannot make it forget. */
  seen: number;
  noted: number;
  noting: { readonly seen: number; readonly line: number } | undefined;
  /** Usage that was reported to the gateway at the end, if it was. */
  reported: ReportedUsage | undefined;
  /** Nothing was known by which its prompt could be estimated when a try left, so it can be counted. */
  isCountable: boolean;
  /** What it must be charged for, where it was settled before it was over. */
  charged: Counts | undefined;
  /** A byte of a 2xx answer has reached the client. */
  firstByte: boolean;
  clientLeft: boolean;
  status: number;
  /** The exchange ended; what its node's clock said, and the journal's line then. */
  ended: boolean;
  endedAtMs: number | undefined;
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

export function newTrace(
  given: Pick<
    Trace,
    | 'id'
    | 'account'
    | 'life'
    | 'node'
    | 'list'
    | 'ratio'
    | 'inputTokens'
    | 'heldOutput'
    | 'hedgeAfterMs'
    | 'isPure'
    | 'stream'
    | 'mark'
    | 'names'
    | 'counted'
  >,
): Trace {
  return {
    ...given,
    tries: [],
    winner: undefined,
    lastFailed: undefined,
    payer: undefined,
    served: undefined,
    isSpared: false,
    admitted: false,
    departed: 0,
    departures: 0,
    departedLine: 0,
    seen: 0,
    noted: 0,
    noting: undefined,
    reported: undefined,
    isCountable: false,
    charged: undefined,
    firstByte: false,
    clientLeft: false,
    status: 0,
    ended: false,
    endedAtMs: undefined,
    endedLine: 0,
    expected: undefined,
    cover: 0n,
    crash: undefined,
    settled: false,
  };
}
