/** What a bucket of a chart is called: its time in the viewer's zone; whole days are those of the ledger, in UTC. Pure. */
export function bucketLabel(at: Date, bucketMs: number, language: string): string {
  const hourMs = 3_600_000;
  const day = { day: 'numeric', month: 'short', timeZone: 'UTC' } as const;
  if (bucketMs >= 24 * hourMs) return new Intl.DateTimeFormat(language, day).format(at);
  const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  if (bucketMs < hourMs) return new Intl.DateTimeFormat(language, time).format(at);
  return new Intl.DateTimeFormat(language, { weekday: 'short', ...time }).format(at);
}
