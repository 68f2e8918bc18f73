/** Messages of AWS's binary event stream, as a vendor writes them. */
import { crc32 } from 'node:zlib';

export function event(type: string, body: object): Buffer {
  return message({ ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }, body);
}

/** Length, length of headers, checksum of both; headers; body; checksum of it all. */
export function message(headers: Record<string, string>, body: object): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const data = Buffer.from(JSON.stringify(body));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + data.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, head, data]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, sum]);
}
