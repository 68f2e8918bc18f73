/** The process's real randomness, and ids made of time and randomness. */
import { randomBytes } from 'node:crypto';
import type { Clock, Random } from './contract.ts';

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
};

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const poolBytes = 4096;

/**
 * Makes UUIDs of version 7 (RFC 9562, 5.7): 48 bits of milliseconds, 74 random bits; they sort by time.
 * Randomness is drawn by the page, because a system call for each request is a price the hot path need not pay.
 */
export function uuidMaker(clock: Clock, random: Random): () => string {
  let pool: Buffer = Buffer.alloc(0);
  let at = 0;
  return () => {
    if (at + 10 > pool.length) {
      pool = random.bytes(poolBytes);
      at = 0;
    }
    const time = clock.now();
    const high = Math.floor(time / 0x1_0000);
    const low = time % 0x1_0000;
    const byte = (offset: number) => hex[pool[at + offset]!]!;
    const id =
      `${hex[(high >>> 24) & 255]}${hex[(high >>> 16) & 255]}${hex[(high >>> 8) & 255]}${hex[high & 255]}-` +
      `${hex[low >>> 8]}${hex[low & 255]}-7${byte(0).slice(1)}${byte(1)}-` +
      `${hex[(pool[at + 2]! & 0x3f) | 0x80]}${byte(3)}-${byte(4)}${byte(5)}${byte(6)}${byte(7)}${byte(8)}${byte(9)}`;
    at += 10;
    return id;
  };
}
