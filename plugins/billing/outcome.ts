/** What a finished exchange costs its client: the outcome table, row by row. Pure. */
import type { Outcome } from '../../core/contract.ts';
import { readCount, type Usage, type UsageClass, usageClasses } from '../../core/usage.ts';
import type { Attempt, UsageReport } from '../../core/vocabulary.ts';
import type { AttemptNote, SentRecord } from './records.ts';

export interface Ending {
  /** Every attempt, as the router left it. */
  readonly attempts: readonly Attempt[];
  /** Those that were handed to a socket. */
  readonly sent: readonly SentRecord[];
  readonly report: UsageReport | undefined;
  readonly outcome: Outcome['kind'];
  /** Estimate of the prompt, and output tokens seen: what is charged when nothing better is known. */
  readonly inputTokens: number;
  readonly seenOutput: number;
}

export type Verdict =
  | { readonly kind: 'VOID'; readonly reason: 'not_sent' | 'refused' | 'unknown' }
  | {
      readonly kind: 'SETTLE';
      readonly reason: 'answered' | 'cut' | 'client_left' | 'no_usage' | 'crash';
      readonly usage: Usage;
      readonly estimated: boolean;
      readonly terminal: boolean;
      readonly finish?: string;
      readonly upstreamId?: string;
    };

/** Settle or void, and for which usage. One exchange is charged for one attempt at most: the last. */
export function judge(ending: Ending): Verdict {
  const { report, sent, outcome } = ending;
  if (sent.length === 0) return { kind: 'VOID', reason: 'not_sent' };
  const result = lastResult(ending);
  const reported = report !== undefined && !report.estimated && countsOf(report.usage) > 0;
  if (result === 'answered' || reported) return settlement(ending);
  if (result === 'refused') return { kind: 'VOID', reason: 'refused' };
  if (result === 'not_sent') return { kind: 'VOID', reason: 'not_sent' };
  // The head had not come. An upstream that broke off may or may not have worked: the client does not pay for it.
  // A client that broke off pays for the prompt that it had us send.
  return outcome === 'client_left' ? settlement(ending) : { kind: 'VOID', reason: 'unknown' };
}

/** What became of the last attempt; one that never came as far as the socket was not sent, whatever it is called. */
function lastResult({ attempts, sent }: Ending): Exclude<Attempt['result'], 'running'> {
  const last = attempts.at(-1);
  if (last === undefined) return 'unknown';
  if (!sent.some((record) => record.number === last.number)) {
    return last.result === 'answered' || last.result === 'refused' ? last.result : 'not_sent';
  }
  return last.result === 'running' ? 'unknown' : last.result;
}

function settlement({ report, outcome, inputTokens, seenOutput }: Ending): Verdict {
  const reason = outcome === 'client_left' ? 'client_left' : outcome === 'failed' ? 'cut' : 'answered';
  if (report === undefined || countsOf(report.usage) === 0) {
    const usage = { input: inputTokens, output: seenOutput };
    const terminal = report?.terminal ?? false;
    return { kind: 'SETTLE', reason: reason === 'answered' ? 'no_usage' : reason, usage, estimated: true, terminal };
  }
  const { usage, repaired } = believable(report.usage, inputTokens, seenOutput);
  return {
    kind: 'SETTLE',
    reason,
    usage,
    estimated: report.estimated || repaired,
    terminal: report.terminal,
    ...(report.finish === undefined ? {} : { finish: report.finish }),
    ...(report.upstreamId === undefined ? {} : { upstreamId: report.upstreamId }),
  };
}

function countsOf(usage: Usage): number {
  return usageClasses.filter((name) => usage[name] !== undefined).length;
}

/** The counts that can be true. In the place of one that cannot stands what the gateway itself has seen. */
function believable(usage: Usage, inputTokens: number, seenOutput: number): { usage: Usage; repaired: boolean } {
  const counts: { [K in UsageClass]?: number } = {};
  let repaired = false;
  for (const name of usageClasses) {
    if (usage[name] === undefined) continue;
    const count = readCount(usage[name]);
    repaired ||= count === undefined;
    if (count !== undefined) counts[name] = count;
    else if (name === 'input') counts.input = inputTokens;
    else if (name === 'output') counts.output = seenOutput;
  }
  return { usage: counts, repaired };
}

/** The attempts that get a row: those that were sent. One that never ended may have been executed. */
export function attemptNotes(attempts: readonly Attempt[], sent: readonly SentRecord[]): AttemptNote[] {
  return sent.flatMap((record) => {
    const attempt = attempts.find((one) => one.number === record.number);
    if (attempt === undefined) return [unfinishedAttempt(record)];
    if (attempt.result === 'not_sent') return [];
    const { number, provider, model, credential, protocol, startedAt, status, durationMs, error } = attempt;
    const note: AttemptNote = {
      number,
      provider,
      model,
      credential,
      protocol,
      startedAt,
      result: attempt.result === 'running' ? 'unknown' : attempt.result,
      ...(status === undefined ? {} : { status }),
      ...(durationMs === undefined ? {} : { durationMs }),
      ...(error === undefined ? {} : { error: error.slice(0, 500) }),
    };
    return [note];
  });
}

/** An attempt of which only its departure is known. */
export function unfinishedAttempt(record: SentRecord): AttemptNote {
  const { number, provider, model, credential, protocol, at } = record;
  return { number, provider, model, credential, protocol, startedAt: at, result: 'unknown' };
}
