/**
 * What vendors have counted of earlier calls, by which calls without a report are estimated: of the conversation's last call, and
 * of all calls of a target. In memory alone, and bounded.
 */
import type { Attempt } from '../../common/domain/calls.ts';
import { promptTokens, type Usage } from '../../common/domain/usage.ts';
import type { Likely } from '../reservations/outcome.ts';
import type { Terms } from '../reservations/terms.ts';
import { AnswerCounts, SizeCounts } from './running-counts.ts';

/** What a call asked for, as far as its estimate depends on it; beside the mark of its conversation and the target of its attempt. */
export type EstimatedCall = Pick<Terms, 'accountId' | 'inputTokens'>;
type Target = Pick<Attempt, 'provider' | 'model'>;

const mostAccounts = 10_000;
const mostTargets = 2_000;
/** Conversations of one account at a time; the newest one replaces the one that was silent longest. */
const mostSessions = 8;

/**
 * Tokens of what a conversation grows by, for each of the hold's, which are two bytes. A small request is mostly names and brackets,
 * and what vendors add to it; of a large one its own ratio is right, but not beyond that of text.
 */
const smallPrompt = 4_000;
const growthOfSmall = 0.3;
const mostGrowth = 0.6;
/** How long vendors keep a prompt: usually, and where a client has paid for longer. */
const shortCacheMs = 5 * 60_000;
const longCacheMs = 60 * 60_000;

/** The last call of a conversation with reported usage. */
interface Session {
  provider: string;
  model: string;
  mark: number;
  target: TargetCounts;
  requested: number;
  prompt: number;
  read: number;
  /** Written to the vendor's cache, for a short and for a long time. */
  writtenShort: number;
  writtenLong: number;
  keptMs: number;
  at: number;
}

interface TargetCounts {
  /** Counts of calls without tools and with tools. */
  readonly plain: SizeCounts;
  readonly tools: SizeCounts;
  readonly answers: AnswerCounts;
}

export class PromptMemory {
  // Plain maps, of which the oldest entry goes: reading one makes nothing, and every call does.
  readonly #accounts = new Map<string, Session[]>();
  readonly #targets = new Map<string, TargetCounts>();

  /** Whether there is anything to estimate the prompt by. */
  knows({ accountId, inputTokens }: EstimatedCall, mark: number, to: Target): boolean {
    if (this.#session(accountId, mark, to) !== undefined) return true;
    const target = this.#targets.get(targetName(to));
    return target !== undefined && sizesOf(target, mark).ratio(inputTokens) !== undefined;
  }

  /** `bytes`: of the answer's text. */
  learn(
    { accountId, inputTokens }: EstimatedCall,
    mark: number,
    to: Target,
    usage: Usage,
    bytes: number,
    at: number,
  ): void {
    const prompt = promptTokens(usage);
    if (prompt === 0 || inputTokens === 0) return;
    const session = this.#session(accountId, mark, to) ?? this.#begin(accountId, mark, to);
    // The same again teaches nothing of the target.
    if (session.requested !== inputTokens || session.prompt !== prompt) {
      sizesOf(session.target, mark).add(inputTokens, prompt);
      session.target.answers.add(usage, bytes);
    }
    session.requested = inputTokens;
    session.prompt = prompt;
    session.read = usage.cache_read ?? 0;
    session.writtenShort = usage.cache_write_5m ?? 0;
    session.writtenLong = usage.cache_write_1h ?? 0;
    if (session.writtenLong > 0) session.keptMs = longCacheMs;
    session.at = at;
  }

  likely({ accountId, inputTokens }: EstimatedCall, mark: number, to: Target, at: number): Likely {
    const session = this.#session(accountId, mark, to);
    const target = session?.target ?? this.#targets.get(targetName(to));
    const tokensPerByte = target?.answers.tokensPerByte;
    if (session !== undefined) return { prompt: continued(session, inputTokens, at), tokensPerByte };
    const ratio = target && sizesOf(target, mark).ratio(inputTokens);
    if (ratio === undefined) return { tokensPerByte };
    return { prompt: { input: atMost(inputTokens, ratio * inputTokens) }, tokensPerByte };
  }

  #session(accountId: string, mark: number, { provider, model }: Target): Session | undefined {
    const sessions = this.#accounts.get(accountId);
    if (sessions === undefined) return undefined;
    for (let index = 0; index < sessions.length; index++) {
      const session = sessions[index]!;
      if (session.mark === mark && session.model === model && session.provider === provider) return session;
    }
    return undefined;
  }

  #begin(accountId: string, mark: number, to: Target): Session {
    const name = targetName(to);
    const target = this.#targets.get(name) ?? newTarget();
    if (!this.#targets.has(name)) put(this.#targets, name, target, mostTargets);
    const begun: Session = {
      ...{ provider: to.provider, model: to.model, mark, target, requested: 0, prompt: 0, read: 0 },
      ...{ writtenShort: 0, writtenLong: 0, keptMs: shortCacheMs, at: 0 },
    };
    const sessions = this.#accounts.get(accountId) ?? [];
    if (sessions.length === 0) put(this.#accounts, accountId, sessions, mostAccounts);
    if (sessions.length < mostSessions) sessions.push(begun);
    else sessions[silentLongest(sessions)] = begun;
    return begun;
  }
}

function put<T>(map: Map<string, T>, name: string, value: T, most: number): void {
  map.set(name, value);
  if (map.size > most) for (const oldest of map.keys()) return void map.delete(oldest);
}

const targetName = ({ provider, model }: Target): string => `${provider} ${model}`;

function newTarget(): TargetCounts {
  return { plain: new SizeCounts(), tools: new SizeCounts(), answers: new AnswerCounts() };
}

function sizesOf({ plain, tools }: TargetCounts, mark: number): SizeCounts {
  return (mark & 1) === 1 ? tools : plain;
}

function silentLongest(sessions: readonly Session[]): number {
  let oldest = 0;
  for (let index = 1; index < sessions.length; index++) if (sessions[index]!.at < sessions[oldest]!.at) oldest = index;
  return oldest;
}

/** The prompt of a conversation's next call: the last one and the added part, in the classes that the vendor is likely to count. */
function continued(session: Session, inputTokens: number, at: number): Usage {
  const { requested, prompt, read, writtenShort, writtenLong, keptMs } = session;
  const ratio = prompt / requested;
  const grown = inputTokens - requested;
  const growth = requested < smallPrompt ? growthOfSmall : Math.min(ratio, mostGrowth);
  const tokens = atMost(inputTokens, grown < 0 ? inputTokens * ratio : prompt + grown * growth);
  const written = writtenShort + writtenLong;
  if (read + written === 0 || at - session.at > keptMs) return { input: tokens };
  // Without marks of the client's own, vendors cache what they have read, in steps: about the same share again.
  const left = written > 0 ? read + written : Math.min(prompt, Math.floor((tokens * read) / prompt));
  const cached = Math.min(tokens, left);
  if (cached === tokens) return { cache_read: cached };
  const rest = tokens - cached;
  if (writtenLong > 0) return { cache_read: cached, cache_write_1h: rest };
  return writtenShort > 0 ? { cache_read: cached, cache_write_5m: rest } : { cache_read: cached, input: rest };
}

/** Never above the hold's estimate. */
function atMost(inputTokens: number, tokens: number): number {
  return Math.min(inputTokens, Math.max(1, Math.ceil(tokens)));
}
