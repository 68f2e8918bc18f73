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

const poolBytes = 4096;
const digits = Buffer.from('0123456789abcdef');
/** Places of the random bytes in the text of a UUID. */
const randomPlaces = [14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;

/**
 * Makes UUIDs of version 7 (RFC 9562, 5.7): 48 bits of milliseconds, 74 random bits; they sort by time.
 * Random bytes are drawn in pages to save a system call per request. The text is made from bytes, since joined parts would cost an
 * object for each part.
 */
export function uuidMaker(clock: Clock, random: Random): () => string {
  const text = Buffer.from('00000000-0000-0000-0000-000000000000');
  let pool: Buffer = Buffer.alloc(0);
  let at = 0;
  let lastTime = -1;
  return () => {
    if (at + randomPlaces.length > pool.length) {
      pool = random.bytes(poolBytes);
      at = 0;
    }
    const time = clock.now();
    if (time !== lastTime) {
      lastTime = time;
      const timeDigits = time.toString(16).padStart(12, '0');
      text.write(`${timeDigits.slice(0, 8)}-${timeDigits.slice(8)}`, 'latin1');
    }
    for (let index = 0; index < randomPlaces.length; index++) {
      const place = randomPlaces[index]!;
      const byte = pool[at++]!;
      text[place] = digits[byte >> 4]!;
      text[place + 1] = digits[byte & 0xf]!;
    }
    // The version and the variant take six bits.
    text[14] = 0x37;
    text[19] = digits[0x8 | ((pool[at - 8]! >> 4) & 0x3)]!;
    return text.toString('latin1');
  };
}
