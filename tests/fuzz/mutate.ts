/** Makes new inputs out of valid ones: by bytes, by pieces of a dictionary, and by JSON values. */
import type { Chance } from '../simulation/chance.ts';

/** Larger inputs are cut: a case must cost little. */
const maxBytes = 32 * 1024;

/** JSON texts that readers get wrong. */
const oddValues = [
  ...['null', 'true', 'false', '0', '-0', '-1', '1e400', '1.5', '9007199254740993', '12345678901234567890'],
  ...['""', '"\\u0000"', '"\\ud800"', '"__proto__"', '"constructor"', '[]', '{}', '[[]]', '[null]', '{"":{}}'],
  ...['{"__proto__":{"a":1}}', '"\\\\"', '"\\""', '[', '{', '"', '\\', 'NaN', 'Infinity', '-'],
];
const oddBytes = [0x00, 0x0a, 0x0d, 0x20, 0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d, 0x2c, 0x3a, 0x7f, 0x80, 0xc3, 0xef, 0xff];

interface Material {
  readonly corpus: readonly Buffer[];
  readonly dictionary: readonly string[];
}

/** One input: a valid one (once in eight: raw bytes) with up to eight changes. */
export function drawInput(chance: Chance, { corpus, dictionary }: Material): Buffer {
  if (chance.oneIn(8)) return rawBytes(chance, chance.below(64));
  let bytes = chance.pick(corpus);
  const changes = chance.below(9);
  for (let count = 0; count < changes; count++) bytes = change(bytes, chance, { corpus, dictionary });
  return bytes.subarray(0, maxBytes);
}

function rawBytes(chance: Chance, length: number): Buffer {
  const isOdd = chance.oneIn(2);
  return Buffer.from(Array.from({ length }, () => (isOdd ? chance.pick(oddBytes) : chance.below(256))));
}

function change(bytes: Buffer, chance: Chance, { corpus, dictionary }: Material): Buffer {
  const at = chance.below(bytes.length + 1);
  const length = 1 + chance.below(chance.oneIn(4) ? Math.max(1, bytes.length) : 8);
  switch (chance.below(10)) {
    case 0: {
      const changed = Buffer.from(bytes);
      if (changed.length > 0) changed[at % changed.length]! ^= 1 << chance.below(8);
      return changed;
    }
    case 1:
      return replaced(bytes, at, at + 1, rawBytes(chance, 1));
    case 2:
      return replaced(bytes, at, at, rawBytes(chance, length % 64));
    case 3:
      return replaced(bytes, at, at + length, Buffer.alloc(0));
    case 4: {
      const from = chance.below(bytes.length + 1);
      return replaced(bytes, at, at, bytes.subarray(from, from + Math.min(length, 4_096)));
    }
    case 5:
      return bytes.subarray(0, at);
    case 6: {
      const other = chance.pick(corpus);
      return replaced(bytes, at, bytes.length, other.subarray(chance.below(other.length + 1)));
    }
    case 7:
      return dictionary.length === 0 ? bytes : replaced(bytes, at, at, Buffer.from(chance.pick(dictionary), 'latin1'));
    default:
      return withOddValue(bytes, chance);
  }
}

/** Replaces one JSON scalar or key. */
function withOddValue(bytes: Buffer, chance: Chance): Buffer {
  const start = chance.below(bytes.length + 1);
  const colon = bytes.indexOf(chance.oneIn(3) ? 0x2c : 0x3a, start);
  if (colon === -1) return bytes;
  let end = colon + 1;
  const isString = bytes[end] === 0x22;
  if (isString) end = bytes.indexOf(0x22, end + 1) + 1 || bytes.length;
  else while (end < bytes.length && !',}]\n'.includes(String.fromCharCode(bytes[end]!))) end++;
  return replaced(bytes, colon + 1, end, Buffer.from(chance.pick(oddValues)));
}

function replaced(bytes: Buffer, start: number, end: number, piece: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, start), piece, bytes.subarray(end)]);
}
