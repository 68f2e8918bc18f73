/** Writes a PNG (RFC 2083): true colour, eight bits, no filter. Pure. */
import { crc32, deflateSync } from 'node:zlib';
import { colourAt, type Size } from './canvas.ts';

const signature = Buffer.from('89504e470d0a1a0a', 'hex');

export function pngOf(seed: string, size: Size): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size.width, 0);
  head.writeUInt32BE(size.height, 4);
  head.set([8, 2], 8);
  const rows = Buffer.alloc(size.height * (1 + 3 * size.width));
  let at = 0;
  for (let y = 0; y < size.height; y++) {
    at++;
    for (let x = 0; x < size.width; x++) {
      rows.set(colourAt(seed, (x / size.width + y / size.height) / 2), at);
      at += 3;
    }
  }
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(data.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}
