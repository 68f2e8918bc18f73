/** One request as one line of time: decisions, sent requests, answers and cost. Pure. */
import { attemptOf, type EventLine } from './event-words.ts';

interface Line extends EventLine {
  readonly atMs: number;
  readonly by: string;
}
export interface SentAttempt {
  readonly number: number;
  readonly provider: string;
  readonly model: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly result: string;
  readonly status?: number | null | undefined;
  readonly durationMs?: number | null | undefined;
  readonly error?: string | null | undefined;
}
export interface TimedRequest {
  readonly receivedAt: string;
  readonly status: number;
  readonly outcome: string;
  readonly firstByteMs?: number | null | undefined;
  readonly totalMs: number;
  readonly dropped: readonly string[];
  readonly story: readonly Line[];
}

export type Moment =
  | { readonly kind: 'received'; readonly atMs: 0 }
  | { readonly kind: 'story'; readonly atMs: number; readonly line: Line }
  | {
      readonly kind: 'attempt';
      readonly atMs: number;
      readonly attempt: SentAttempt;
      readonly tone: Tone;
      /** Its lines of the timeline. */
      readonly notes: readonly Line[];
    }
  | { readonly kind: 'dropped'; readonly atMs: number; readonly fields: readonly string[] }
  | { readonly kind: 'first-byte'; readonly atMs: number }
  | { readonly kind: 'end'; readonly atMs: number; readonly tone: Tone };
export type Tone = 'good' | 'bad' | 'odd';

const order = ['received', 'story', 'dropped', 'attempt', 'first-byte', 'end'];

/** The moments of a request in their order; within one millisecond, in the timeline's order, or in the order of events. */
export function timelineOf(request: TimedRequest, attempts: readonly SentAttempt[]): Moment[] {
  const { totalMs, firstByteMs, dropped } = request;
  const moments: Moment[] = [
    { kind: 'received', atMs: 0 },
    ...storyMoments(request, attempts),
    { kind: 'end', atMs: totalMs, tone: endTone(request) },
  ];
  const sentMs = Math.min(...moments.flatMap(({ kind, atMs }) => (kind === 'attempt' ? [atMs] : [])), totalMs);
  if (dropped.length > 0) moments.push({ kind: 'dropped', atMs: sentMs, fields: dropped });
  if (typeof firstByteMs === 'number') moments.push({ kind: 'first-byte', atMs: Math.min(firstByteMs, totalMs) });
  return moments
    .map((moment, place) => ({ moment, place }))
    .sort(
      (left, right) =>
        left.moment.atMs - right.moment.atMs || rank(left.moment, right.moment) || left.place - right.place,
    )
    .map(({ moment }) => moment);
}

/** Timeline events and attempts keep the places that the timeline gives them; the others have theirs by what they are. */
function rank(left: Moment, right: Moment): number {
  const isPlaced = (kind: Moment['kind']) => kind === 'story' || kind === 'attempt';
  return isPlaced(left.kind) && isPlaced(right.kind) ? 0 : order.indexOf(left.kind) - order.indexOf(right.kind);
}

/** The timeline's lines, with each attempt in the place of the first line on it; attempts that it leaves out come last. */
function storyMoments({ receivedAt, totalMs, story }: TimedRequest, attempts: readonly SentAttempt[]): Moment[] {
  const momentOf = (attempt: SentAttempt, atMs: number): Moment => {
    const notes = story.filter((line) => attemptOf(line) === attempt.number);
    return { kind: 'attempt', atMs, attempt, tone: toneOf(attempt), notes };
  };
  const placed = new Set<SentAttempt>();
  const lines = story.flatMap((line): Moment[] => {
    const attempt = attempts.find(({ number }) => number === attemptOf(line));
    if (attempt === undefined) return [{ kind: 'story', atMs: line.atMs, line }];
    if (placed.has(attempt)) return [];
    placed.add(attempt);
    return [momentOf(attempt, line.atMs)];
  });
  const rest = attempts
    .filter((attempt) => !placed.has(attempt))
    .map((attempt) => {
      const atMs = Date.parse(attempt.startedAt) - Date.parse(receivedAt);
      return momentOf(attempt, Math.min(Math.max(atMs, 0), totalMs));
    });
  return [...lines, ...rest];
}

function toneOf({ result, status }: SentAttempt): Tone {
  if (result === 'answered' && (status ?? 200) < 400) return 'good';
  return result === 'running' ? 'odd' : 'bad';
}

function endTone({ status, outcome }: TimedRequest): Tone {
  if (outcome === 'client_left') return 'odd';
  return outcome === 'failed' || status >= 400 ? 'bad' : 'good';
}
