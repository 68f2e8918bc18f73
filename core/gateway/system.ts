/** The system's randomness and clock, and UUIDs of both. */
import { randomBytes } from 'node:crypto';
import type { Clock, Random } from '../contract/host-tools.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
};

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const poolBytes = 4096;

/** Bytes as hexadecimal, with the version's 7 and the variant's two bits in their places. */
const versioned = hex.map((digits) => `7${digits[1]}`);
const variant = hex.map((_digits, byte) => hex[(byte & 0x3f) | 0x80]!);

/**
 * Makes UUIDs of version 7 (RFC 9562, 5.7): 48 bits of milliseconds, 74 random bits; they sort by time.
 * Random bytes are drawn in pages to save a system call per request.
 */
export function uuidMaker(clock: Clock, random: Random): () => string {
  let pool: Buffer = Buffer.alloc(0);
  let at = 0;
  let lastTime = -1;
  let timeDigits = '';
  return () => {
    if (at + 10 > pool.length) {
      pool = random.bytes(poolBytes);
      at = 0;
    }
    const time = clock.now();
    if (time !== lastTime) {
      lastTime = time;
      const digits = time.toString(16).padStart(12, '0');
      timeDigits = `${digits.slice(0, 8)}-${digits.slice(8)}`;
    }
    const start = at;
    at += 10;
    return (
      `${timeDigits}-${versioned[pool[start]!]}${hex[pool[start + 1]!]}-${variant[pool[start + 2]!]}${hex[pool[start + 3]!]}-` +
      `${hex[pool[start + 4]!]}${hex[pool[start + 5]!]}${hex[pool[start + 6]!]}${hex[pool[start + 7]!]}${hex[pool[start + 8]!]}${hex[pool[start + 9]!]}`
    );
  };
}
