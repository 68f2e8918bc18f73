/** The charge for a finished exchange: the outcome table, row by row. Pure. */
import type { Outcome } from '../../../core/contract/contract.ts';
import type { Attempt, Unreported, UsageReport } from '../../common/domain/calls.ts';
import { isDelivered, type ServedAnswer, type ServedBy } from '../../common/domain/ledger.ts';
import type { Services } from '../../common/domain/prices.ts';
import { readCount, type Usage, type UsageClass } from '../../common/domain/usage.ts';
import { type ModelSize, possibleUsage, type RequestedUsage } from '../../common/wire/possible-usage.ts';
import type { AttemptNote, SentAttempt } from '../model/records.ts';

export interface Ending {
  /** Every attempt in its final state. */
  readonly attempts: readonly Attempt[];
  /** The attempts that were sent to an upstream. */
  readonly sent: readonly SentAttempt[];
  readonly report: UsageReport | undefined;
  readonly outcome: Outcome['kind'];
  /** A plugin gave the answer without an attempt. */
  readonly served?: ServedAnswer | undefined;
  /** The requested output and the model's size, which bound the usage. Charged when nothing better is known. */
  readonly requested: RequestedUsage;
  readonly size: ModelSize;
  /** Output tokens seen: charged when nothing better is known. */
  readonly seenOutput: number;
  /** The answer was stopped because it could not be paid further: the output seen is charged. */
  readonly unpaid?: boolean;
  /** What stands in for what the vendor has not reported; absent: sizes. */
  readonly likely?: Likely | undefined;
}

/** The likely usage of a call. */
export interface Likely {
  /** Absent: the hold's estimate stands. */
  readonly prompt?: Usage | undefined;
  /** Output tokens of a byte of text; absent: not known. */
  readonly tokensPerByte?: number | undefined;
}

/** Prefix of a charge's reason for an answer without an attempt; its source follows. */
export const servedPrefix = 'served by ';

export interface Settlement {
  readonly kind: 'SETTLE';
  readonly reason:
    | 'answered'
    | 'cut'
    | 'client_left'
    | 'no_usage'
    | 'crash'
    | 'absurd'
    | `${typeof servedPrefix}${string}`;
  /** Charged instead of attempts. */
  readonly served?: ServedBy | undefined;
  readonly usage: Usage;
  /** The vendor's own counts where the call cannot have consumed them: estimates are charged. */
  readonly impossible?: Usage | undefined;
  readonly estimated: boolean;
  readonly terminal: boolean;
  readonly finish?: string | undefined;
  readonly upstreamId?: string | undefined;
  /** Services reported by the upstream, which prices depend on. */
  readonly services?: Services | undefined;
  readonly media?: readonly string[] | undefined;
}

export type Verdict = Settlement | { readonly kind: 'VOID'; readonly reason: 'not_sent' | 'refused' | 'unknown' };

/** Settle or void, and for which usage. One exchange is charged once: for the last attempt, or for an answer without one. */
export function judge(ending: Ending): Verdict {
  const { outcome, served } = ending;
  if (served === undefined) return judgeAttempts(ending);
  return isDelivered(served, outcome) ? servedSettlement(ending, served) : notDelivered(ending);
}

/** The operator bears the cost of the attempts, which all failed. */
function notDelivered({ attempts, sent }: Ending): Verdict {
  if (sent.length === 0) return { kind: 'VOID', reason: 'not_sent' };
  const areRefused = attempts.every(({ result }) => result === 'refused' || result === 'not_sent');
  return { kind: 'VOID', reason: areRefused ? 'refused' : 'unknown' };
}

function judgeAttempts(ending: Ending): Verdict {
  const { report, sent, outcome } = ending;
  if (sent.length === 0) return { kind: 'VOID', reason: 'not_sent' };
  const result = lastResult(ending);
  // Reports compute their usage on access, so it is read once.
  const usage = report?.usage;
  const counted = usage !== undefined && hasCounts(usage);
  const isRefusedHere = report?.refusedHere === true;
  if (result === 'answered' || ending.unpaid === true || isRefusedHere || (counted && report?.estimated === false)) {
    return settlement(ending, counted ? usage : undefined);
  }
  if (result === 'refused' || result === 'not_sent') {
    return { kind: 'VOID', reason: ending.attempts.some(mayHaveRun) ? 'unknown' : result };
  }
  // No response head had arrived. After an upstream failure it is unknown whether work was done: the client does not
  // pay. A client that disconnected before pays for the prompt that was sent for it.
  if (outcome === 'client_left' && ending.attempts.at(-1)?.failedFirst !== true)
    return settlement(ending, counted ? usage : undefined);
  return { kind: 'VOID', reason: 'unknown' };
}

function servedSettlement({ requested: { inputTokens }, seenOutput, report }: Ending, served: ServedBy): Settlement {
  const usage = believable(served.usage, inputTokens, seenOutput);
  return {
    kind: 'SETTLE',
    reason: `${servedPrefix}${served.name}`,
    usage,
    estimated: usage !== served.usage,
    terminal: true,
    finish: report?.finish,
    served,
  };
}

/** An attempt before the last one, with an unknown outcome. */
function mayHaveRun({ result }: Attempt): boolean {
  return result === 'unknown';
}

/** The result of the last attempt; an attempt that never reached the socket was not sent, whatever its result says. */
function lastResult({ attempts, sent }: Ending): Exclude<Attempt['result'], 'running'> {
  const last = attempts.at(-1);
  if (last === undefined) return 'unknown';
  if (numbered(sent, last.number) === undefined) {
    return last.result === 'answered' || last.result === 'refused' ? last.result : 'not_sent';
  }
  return last.result === 'running' ? 'unknown' : last.result;
}

/** Finds an item by its attempt number; the lists are short. */
function numbered<Item extends { readonly number: number }>(items: readonly Item[], number: number): Item | undefined {
  for (const item of items) if (item.number === number) return item;
  return undefined;
}

/** `reported`: the report's usage, if it has any count. */
function settlement(ending: Ending, reported: Usage | undefined): Settlement {
  const { report, outcome, seenOutput, requested, size } = ending;
  const { inputTokens, counted } = requested;
  const reason = outcome === 'client_left' ? 'client_left' : outcome === 'failed' ? 'cut' : 'answered';
  if (report === undefined || reported === undefined) {
    const usage = { ...(ending.likely?.prompt ?? { input: inputTokens }), output: seenOutput, ...counted };
    const terminal = report?.terminal ?? false;
    return { kind: 'SETTLE', reason: reason === 'answered' ? 'no_usage' : reason, usage, estimated: true, terminal };
  }
  const believed = believable(reported, inputTokens, seenOutput, counted);
  const seen = report.seen ?? { bytes: seenOutput, tokens: seenOutput };
  const possible = possibleUsage(believed, requested, size, seen);
  const { likely } = ending;
  const isRefined = likely !== undefined && possible === reported;
  const usage = isRefined ? refined(possible, report.unreported, likely, inputTokens) : possible;
  return {
    kind: 'SETTLE',
    reason,
    usage,
    impossible: possible === reported ? undefined : reported,
    estimated: possible !== reported || report.estimated,
    terminal: report.terminal,
    finish: report.finish,
    upstreamId: report.upstreamId,
    services: report.services,
    media: report.media,
  };
}

/** With better estimates in the place of those by sizes, never above these. */
function refined(usage: Usage, missing: Unreported | undefined, likely: Likely, inputTokens: number): Usage {
  if (missing === undefined) return usage;
  const { prompt, tokensPerByte } = likely;
  const better: { [K in UsageClass]?: number } = { ...usage };
  if (missing.prompt && prompt !== undefined) {
    const reported = (usage.input ?? 0) - inputTokens;
    if (reported > 0) better.input = reported;
    else delete better.input;
    for (const name in prompt)
      better[name as UsageClass] = (better[name as UsageClass] ?? 0) + prompt[name as UsageClass]!;
  }
  if (missing.tokens > 0 && tokensPerByte !== undefined) {
    const tokens = Math.min(missing.tokens, Math.ceil(missing.bytes * tokensPerByte));
    better.output = (usage.output ?? 0) - missing.tokens + tokens;
  }
  return better;
}

function hasCounts(usage: Usage): boolean {
  for (const name in usage) if (usage[name as UsageClass] !== undefined) return true;
  return false;
}

/** The usage, with each implausible count replaced by what the gateway has seen. */
export function believable(usage: Usage, inputTokens: number, seenOutput: number, counted: Usage = {}): Usage {
  for (const name in usage) {
    const count = usage[name as UsageClass];
    if (count !== undefined && readCount(count) !== count)
      return repaired(usage, { ...counted, input: inputTokens, output: seenOutput });
  }
  return usage;
}

function repaired(usage: Usage, seen: Usage): Usage {
  const counts: { [K in UsageClass]?: number } = {};
  for (const name in usage) {
    const given = usage[name as UsageClass];
    const count = readCount(given);
    if (count !== undefined) counts[name as UsageClass] = count;
    else if (given !== undefined && seen[name as UsageClass] !== undefined)
      counts[name as UsageClass] = seen[name as UsageClass]!;
  }
  return counts;
}

/**
 * The attempts that get a row: those that were sent. An unfinished one may have been executed. The client may pay
 * for the last attempt only, even if it was not the last one sent.
 */
export function attemptNotes(attempts: readonly Attempt[], sent: readonly SentAttempt[]): AttemptNote[] {
  if (sent.length === 1) {
    const attempt = numbered(attempts, sent[0]!.number);
    if (attempt === undefined) return [unfinishedAttempt(sent[0]!)];
    return attempt.result === 'not_sent' ? [] : [noteOf(attempt)];
  }
  const notes = sent.flatMap((sentAttempt) => noteOfSent(attempts, sentAttempt) ?? []);
  if (notes.length > 1) moveToEnd(notes, attempts.at(-1)?.number);
  return notes;
}

function noteOfSent(attempts: readonly Attempt[], sent: SentAttempt): AttemptNote | undefined {
  const attempt = numbered(attempts, sent.number);
  if (attempt === undefined) return unfinishedAttempt(sent);
  return attempt.result === 'not_sent' ? undefined : noteOf(attempt);
}

function moveToEnd(notes: AttemptNote[], number: number | undefined): void {
  const index = notes.findIndex((note) => note.number === number);
  if (index !== -1) notes.push(...notes.splice(index, 1));
}

const longestError = 500;

function noteOf(attempt: Attempt): AttemptNote {
  const { durationMs, error } = attempt;
  return {
    number: attempt.number,
    provider: attempt.provider,
    model: attempt.model,
    credential: attempt.credential,
    protocol: attempt.protocol,
    startedAt: attempt.startedAt,
    result: attempt.result === 'running' ? 'unknown' : attempt.result,
    status: attempt.status,
    durationMs: durationMs === undefined ? undefined : Math.round(durationMs),
    error: error?.slice(0, longestError),
  };
}

/** An attempt of which only the sending is known. */
export function unfinishedAttempt({ number, provider, model, credential, protocol, at }: SentAttempt): AttemptNote {
  return { number, provider, model, credential, protocol, startedAt: at, result: 'unknown' };
}
