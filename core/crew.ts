/** The processes of one machine that serve a gateway together: who is who, and what is whose. */
import { join } from 'node:path';

export interface Crew {
  /** Of this process, from 1. No two that live have the same. */
  readonly place: number;
  /** How many serve; for a while more, when some are being replaced. */
  readonly size: number;
  /** The first one that serves: what people are told once, it tells. */
  readonly isFirst: boolean;
}

/** A process that serves by itself. */
export const alone: Crew = { place: 1, size: 1, isFirst: true };

/** Where a process keeps what is its own. The first has the directory of one that serves alone: it goes on with that one's journal. */
export function ownDirectory(directory: string, place: number): string {
  return place === 1 ? directory : join(directory, `worker-${place}`);
}

/** The places that have a directory, as their names tell. */
export function placesOf(names: readonly string[]): number[] {
  return names.flatMap((name) => {
    const match = /^worker-([1-9]\d{0,3})$/.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
}
