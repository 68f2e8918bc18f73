/** What calls must cost whose vendors have reported nothing: by the last complete call of their conversation, by others, by a count. */
import type { Life } from './schedule.ts';
import { bytesOf, countedOf } from './talk.ts';
import type { Counts } from './tariff.ts';
import type { ReportedUsage, Trace, Try } from './trace.ts';

/** Conversations of an account that are remembered. */
const mostSessions = 8;
const cachedForMs = 5 * 60_000;
/** Calls of a size that say something of another one, and those after which older ones count half. */
const fewestCalls = 3;
const mostCalls = 64;
const mostBytes = 256 * 1_024;

/** Calls of one size. */
interface Size {
  calls: number;
  requested: number;
  counted: number;
}

/** All calls of a model at a vendor. */
interface Target {
  readonly sizes: Map<string, Size>;
  bytes: number;
  tokens: number;
}

/** The last complete call of a conversation with a target. */
interface Last {
  readonly mark: number;
  readonly of: string;
  requested: number;
  prompt: number;
  cached: number;
  atMs: number;
}

/** What a process has seen. */
interface ProcessMemory {
  /** By account; the order is that in which they were first remembered, or took another one's place. */
  readonly sessions: Map<string, Last[]>;
  readonly targets: Map<string, Target>;
}

type Call = Pick<Trace, 'id' | 'account' | 'life' | 'mark' | 'inputTokens' | 'seen' | 'isCountable'> & {
  readonly reported: ReportedUsage | undefined;
};
type To = Pick<Try, 'provider' | 'target'>;

const nameOf = ({ provider, target }: To) => `${provider} ${target}`;
/** By powers of two, with tools and without. */
const sizeOf = ({ mark, inputTokens }: Call) => `${mark! % 2} ${Math.floor(Math.log2(Math.max(1, inputTokens)))}`;

export class EstimateOracle {
  readonly #byAccount = new Map<Life, ProcessMemory>();

  begun(life: Life): void {
    this.#byAccount.set(life, { sessions: new Map(), targets: new Map() });
  }

  died(life: Life): void {
    this.#byAccount.delete(life);
  }

  /** It goes to a vendor. */
  sends(trace: Trace, attempt: Try): void {
    if (trace.mark === undefined) return;
    const isKnown = this.#last(trace, attempt) !== undefined || this.#size(trace, attempt) !== undefined;
    trace.isCountable ||= !isKnown;
  }

  /** What it is charged for. */
  usageOf(call: Call, payer: To, atMs: number): Counts {
    const { reported, inputTokens, seen, mark } = call;
    if (reported !== undefined && !reported.isGuess) return reported.usage;
    const output = reported?.seen ?? seen;
    if (mark === undefined) return { input: inputTokens, output };
    const target = this.#byAccount.get(call.life)?.targets.get(nameOf(payer));
    const isText = reported !== undefined && target !== undefined && target.bytes > 0;
    const ofText = isText ? Math.ceil(bytesOf(call.id, reported.seen) * (target.tokens / target.bytes)) : output;
    return { ...this.#promptOf(call, payer, atMs), output: Math.min(output, ofText) };
  }

  /** What a vendor has reported of a whole answer is known from now on. */
  learn(call: Call, payer: To, atMs: number): void {
    const { reported, mark, inputTokens } = call;
    const book = this.#byAccount.get(call.life);
    if (book === undefined || mark === undefined || reported === undefined || reported.isGuess || !reported.isWhole)
      return;
    const { input = 0, cache_read: cached = 0 } = reported.usage;
    const prompt = input + cached;
    if (prompt === 0 || inputTokens === 0) return;
    const last = this.#last(call, payer);
    if (last?.requested !== inputTokens || last.prompt !== prompt) this.#count(book, call, payer, prompt, reported);
    if (last !== undefined) Object.assign(last, { requested: inputTokens, prompt, cached, atMs });
    else remember(book, call.account, { mark, of: nameOf(payer), requested: inputTokens, prompt, cached, atMs });
  }

  #count(book: ProcessMemory, call: Call, payer: To, prompt: number, { usage, seen }: ReportedUsage): void {
    const target = book.targets.get(nameOf(payer)) ?? { sizes: new Map<string, Size>(), bytes: 0, tokens: 0 };
    book.targets.set(nameOf(payer), target);
    const size = target.sizes.get(sizeOf(call)) ?? { calls: 0, requested: 0, counted: 0 };
    target.sizes.set(sizeOf(call), size);
    if (size.calls >= mostCalls)
      Object.assign(size, { calls: half(size.calls), requested: half(size.requested), counted: half(size.counted) });
    size.calls += 1;
    size.requested += call.inputTokens;
    size.counted += prompt;
    const bytes = bytesOf(call.id, seen);
    const { output = 0, reasoning = 0 } = usage;
    // Reasoning that has not passed says nothing of the text.
    const tokens = 2 * (output + reasoning) <= bytes ? output + reasoning : output;
    if (tokens === 0 || bytes < tokens) return;
    target.bytes += bytes;
    target.tokens += tokens;
    if (target.bytes >= mostBytes) Object.assign(target, { bytes: half(target.bytes), tokens: half(target.tokens) });
  }

  #promptOf(call: Call, payer: To, atMs: number): Counts {
    const { inputTokens } = call;
    const last = this.#last(call, payer);
    if (last !== undefined) return nextOf(last, inputTokens, atMs);
    const size = this.#size(call, payer);
    if (size !== undefined) return { input: within(inputTokens, (size.counted / size.requested) * inputTokens) };
    const counted = call.isCountable ? countedOf(call) : undefined;
    return { input: Math.min(inputTokens, counted ?? inputTokens) };
  }

  #last({ account, life, mark }: Pick<Call, 'account' | 'life' | 'mark'>, to: To): Last | undefined {
    const known = this.#byAccount.get(life)?.sessions.get(account);
    return known?.find((last) => last.mark === mark && last.of === nameOf(to));
  }

  /** undefined: too few calls of such a size. */
  #size(call: Call, to: To): Size | undefined {
    const size = this.#byAccount.get(call.life)?.targets.get(nameOf(to))?.sizes.get(sizeOf(call));
    return size !== undefined && size.calls >= fewestCalls ? size : undefined;
  }
}

/** The prompt of the next call of a conversation, of which the same share is in the vendor's cache for a while. */
function nextOf({ requested, prompt, cached, atMs }: Last, inputTokens: number, nowMs: number): Counts {
  const ratio = prompt / requested;
  const grown = inputTokens - requested;
  const growth = grown * (requested < 4_000 ? 0.3 : Math.min(ratio, 0.6));
  const tokens = within(inputTokens, grown < 0 ? inputTokens * ratio : prompt + growth);
  if (cached === 0 || nowMs - atMs > cachedForMs) return { input: tokens };
  const again = Math.min(tokens, prompt, Math.floor((tokens * cached) / prompt));
  return { input: tokens - again, cache_read: again };
}

/** Never above the hold. */
const within = (inputTokens: number, tokens: number): number => Math.min(inputTokens, Math.max(1, Math.ceil(tokens)));

const half = (sum: number): number => Math.floor(sum / 2);

/** One that has no room takes that of the conversation that was silent longest. */
function remember({ sessions }: ProcessMemory, account: string, last: Last): void {
  const known = sessions.get(account) ?? [];
  sessions.set(account, known);
  if (known.length < mostSessions) known.push(last);
  else {
    const oldest = Math.min(...known.map(({ atMs }) => atMs));
    known[known.findIndex(({ atMs }) => atMs === oldest)] = last;
  }
}
