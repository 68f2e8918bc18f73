/** What a bucket of a chart is called: its hour within a day or two, else its day, in the viewer's zone. Pure. */
export function bucketLabel(at: Date, bucketMs: number, language: string): string {
  const hourMs = 3_600_000;
  if (bucketMs >= 24 * hourMs) return new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short' }).format(at);
  const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  if (bucketMs < hourMs) return new Intl.DateTimeFormat(language, time).format(at);
  return new Intl.DateTimeFormat(language, { weekday: 'short', ...time }).format(at);
}
