/** What a request's `cache-control` asks for. Pure. */

export interface Wish {
  /** An earlier answer may be given. */
  readonly reads: boolean;
  /** The answer may be kept. */
  readonly writes: boolean;
  /** The oldest answer that is wanted. */
  readonly maxAgeMs: number;
}

const usual: Wish = { reads: true, writes: true, maxAgeMs: Number.POSITIVE_INFINITY };

export function wishIn(header: string | undefined): Wish {
  if (header === undefined || header === '') return usual;
  let { reads, writes, maxAgeMs } = usual;
  for (const directive of header.toLowerCase().split(',')) {
    const [name, value = ''] = directive.split('=').map((part) => part.trim());
    if (name === 'no-store') [reads, writes] = [false, false];
    else if (name === 'no-cache') reads = false;
    else if (name === 'max-age') maxAgeMs = Math.min(maxAgeMs, secondsIn(value) * 1_000);
  }
  // Nothing is that young.
  return { reads: reads && maxAgeMs > 0, writes, maxAgeMs };
}

/** What is no number of seconds asks for none: who sets an age does not want any answer, however old. */
function secondsIn(value: string): number {
  const [, digits] = /^"?(\d+)"?$/.exec(value) ?? [];
  return digits === undefined ? 0 : Number(digits);
}
