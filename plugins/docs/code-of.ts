/** An error code, and how one is written. */
import type { ErrorKind } from '../../core/contract/errors.ts';

export interface ErrorCode {
  readonly kinds: readonly ErrorKind[];
  readonly meaning: string;
  readonly cure: string;
}

export const of = (kinds: ErrorKind | readonly ErrorKind[], meaning: string, cure: string): ErrorCode => ({
  kinds: [kinds].flat() as readonly ErrorKind[],
  meaning,
  cure,
});

export const waits = 'Repeat after `retry-after`.';
