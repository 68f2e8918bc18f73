/** One request as one line of time: what was decided, what was sent where, what came back, what it cost. Pure. */

interface Line {
  readonly atMs: number;
  readonly by: string;
  readonly text: string;
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
export interface Told {
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
  | { readonly kind: 'story'; readonly atMs: number; readonly by: string; readonly text: string }
  | { readonly kind: 'attempt'; readonly atMs: number; readonly attempt: SentAttempt; readonly tone: Tone }
  | { readonly kind: 'dropped'; readonly atMs: number; readonly fields: readonly string[] }
  | { readonly kind: 'first-byte'; readonly atMs: number }
  | { readonly kind: 'end'; readonly atMs: number; readonly tone: Tone };
export type Tone = 'good' | 'bad' | 'odd';

const order = ['received', 'story', 'dropped', 'attempt', 'first-byte', 'end'];

/** The moments of a request in their order; within one millisecond, as they happen. */
export function timelineOf(request: Told, attempts: readonly SentAttempt[]): Moment[] {
  const { totalMs, firstByteMs, dropped, story } = request;
  const received = Date.parse(request.receivedAt);
  const moments: Moment[] = [
    { kind: 'received', atMs: 0 },
    ...story.map(({ atMs, by, text }) => ({ kind: 'story' as const, atMs, by, text })),
    ...attempts.map((attempt) => ({
      kind: 'attempt' as const,
      atMs: Math.min(Math.max(Date.parse(attempt.startedAt) - received, 0), totalMs),
      attempt,
      tone: toneOf(attempt),
    })),
    { kind: 'end', atMs: totalMs, tone: endTone(request) },
  ];
  const sentMs = Math.min(...moments.flatMap(({ kind, atMs }) => (kind === 'attempt' ? [atMs] : [])), totalMs);
  if (dropped.length > 0) moments.push({ kind: 'dropped', atMs: sentMs, fields: dropped });
  if (typeof firstByteMs === 'number') moments.push({ kind: 'first-byte', atMs: Math.min(firstByteMs, totalMs) });
  return moments.sort((left, right) => left.atMs - right.atMs || order.indexOf(left.kind) - order.indexOf(right.kind));
}

function toneOf({ result, status }: SentAttempt): Tone {
  if (result === 'answered' && (status ?? 200) < 400) return 'good';
  return result === 'running' ? 'odd' : 'bad';
}

function endTone({ status, outcome }: Told): Tone {
  if (outcome === 'client_left') return 'odd';
  return outcome === 'failed' || status >= 400 ? 'bad' : 'good';
}
