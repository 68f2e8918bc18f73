/** Cells of CSV files as people read them: days of their zone, plain numbers, words. Pure. */
import { table } from '../../../../core/contract/table.ts';
import '../../../../core/tools/temporal.ts';
import { tokenClasses, type Usage } from '../../../common/domain/usage.ts';
import { usualZone } from '../time-zone.ts';

/** `2026-11-28` and `14:03:05` of the reader's zone. */
export function dayAndTime(at: string, zone: string = usualZone): { readonly day: string; readonly time: string } {
  const moment = Temporal.Instant.from(at).toZonedDateTimeISO(zone);
  return { day: moment.toPlainDate().toString(), time: moment.toPlainTime().toString({ smallestUnit: 'second' }) };
}

const isOutput = (name: string) => name.startsWith('output') || name === 'reasoning';

/** Tokens that went in and came out; what is counted otherwise in words, such as `2 image; 1 web search`. */
export function usageCells(usage: Usage | Readonly<Record<string, number>> | null | undefined) {
  if (usage === null || usage === undefined) return { inputTokens: null, outputTokens: null, otherUsage: null };
  const counts = Object.entries(usage).filter(([, count]) => count > 0);
  const isToken = (name: string) => (tokenClasses as readonly string[]).includes(name);
  const sum = (isWanted: (name: string) => boolean) =>
    counts.reduce((total, [name, count]) => (isToken(name) && isWanted(name) ? total + count : total), 0);
  const others = counts.filter(([name]) => !isToken(name) && name !== 'request');
  return {
    inputTokens: sum((name) => !isOutput(name)),
    outputTokens: sum(isOutput),
    otherUsage: others.map(([name, count]) => `${count} ${name.replaceAll('_', ' ')}`).join('; ') || null,
  };
}

const words: Readonly<Record<string, string>> = table({
  complete: 'complete',
  client_left: 'client disconnected',
  failed: 'failed',
  answered: 'answered',
  cut: 'cut off: charged for what arrived',
  no_usage: 'answered without counts: charged by estimate',
  crash: 'interrupted by a restart: charged by estimate',
  absurd: 'impossible counts: charged what was set aside',
  CHARGE: 'call',
  CREDIT: 'credit',
  DEBIT: 'debit',
  PURCHASE: 'purchase',
  REFUND: 'refund',
  PAYOUT: 'payout',
  EXPIRE: 'expired',
});

/** For a value that the gateway stores as a name; others are texts of people. */
export const wordOf = (name: string | null): string | null => (name === null ? null : (words[name] ?? name));
