/** The conversation of a simulated call, as the gateway may ask about it, and the report of an answer's usage. */
import type { Conversation, UsageReport } from '../../plugins/common/domain/calls.ts';
import type { ReportedUsage, Trace } from './trace.ts';

/** The same for the same request, without a draw. */
function hashOf(id: string): number {
  let hash = 11;
  for (let at = 0; at < id.length; at += 1) hash = (hash * 33 + id.charCodeAt(at)) % 1_000_003;
  return hash;
}

/** Bytes of so many tokens of an answer's text. */
export const bytesOf = (id: string, tokens: number): number => tokens * (2 + (hashOf(id) % 4));

/** The prompt by a public vocabulary, which may count more than the gateway's estimate; undefined: it cannot be read. */
export function countedOf({ id, inputTokens }: Pick<Trace, 'id' | 'inputTokens'>): number | undefined {
  const hash = hashOf(id);
  return hash % 7 === 0 ? undefined : Math.floor((inputTokens * (20 + (hash % 100))) / 100);
}

const nameless = { name: undefined, opening: () => undefined };

/** `settled`: called when the charge is known and the request is needed no more. undefined: nothing is known of it. */
export function talkOf(trace: Trace, leavesTraces: boolean | undefined, settled: () => void): Conversation | undefined {
  const { mark } = trace;
  if (mark === undefined && leavesTraces === undefined) return undefined;
  const effects = leavesTraces === undefined ? {} : { hasSideEffects: () => leavesTraces };
  if (mark === undefined) return { ...nameless, ...effects };
  let isKept = false;
  return {
    ...nameless,
    ...effects,
    mark,
    keep: () => {
      isKept = true;
    },
    forget: () => {
      isKept = false;
      settled();
    },
    countPrompt: async () => (isKept ? countedOf(trace) : undefined),
  };
}

/** `usage`: as the gateway's meter has read it. */
export function reportOf(
  id: string,
  { usage: reported, isGuess, isWhole, seen }: ReportedUsage,
  usage = reported,
): UsageReport {
  const text = { bytes: bytesOf(id, seen), tokens: seen };
  const unreported = isGuess ? { prompt: true, ...text } : undefined;
  const shown = { upstreamId: undefined, finish: 'stop', seen: text };
  return { usage, estimated: isGuess, terminal: isWhole, ...shown, unreported };
}
