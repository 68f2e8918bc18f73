/** What a fuzz target is: where its inputs begin, and what must hold for any bytes. */
import type { Chance } from '../simulation/chance.ts';

export interface Target {
  readonly name: string;
  /** Valid inputs from which the others are made. */
  readonly corpus: readonly Buffer[];
  /** Pieces that mean something to the reader under test. */
  readonly dictionary: readonly string[];
  /** Throws when something does not hold for `bytes`. Draws only from `chance`, so that a case can be run again. */
  check(bytes: Buffer, chance: Chance): void | Promise<void>;
}

/** The bytes in up to `most` pieces. */
export function cut(bytes: Buffer, chance: Chance, most = 8): Buffer[] {
  const ends = Array.from({ length: chance.below(most) }, () => chance.below(bytes.length + 1));
  const places = [0, ...ends.sort((one, other) => one - other), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}
