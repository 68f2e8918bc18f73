/** A DNS server on loopback that knows TXT records, as a test sets them. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export interface FakeDns {
  /** For `companies.dns`. */
  readonly address: string;
  /** By name; others do not exist. */
  readonly texts: Map<string, readonly string[]>;
  close(): void;
}

export async function startDns(): Promise<FakeDns> {
  const texts = new Map<string, readonly string[]>();
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => socket.send(answerTo(query, texts), from.port, from.address));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address() as AddressInfo;
  return { address: `127.0.0.1:${port}`, texts, close: () => socket.close() };
}

/** https://www.rfc-editor.org/rfc/rfc1035#section-4.1 */
function answerTo(query: Buffer, texts: FakeDns['texts']): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const found = texts.get(labels.join('.').toLowerCase());
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(found === undefined ? 0x8183 : 0x8180, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(found?.length ?? 0, 6);
  return Buffer.concat([header, question, ...(found ?? []).map(textRecord)]);
}

function textRecord(text: string): Buffer {
  const body = Buffer.from(text);
  const head = Buffer.from([0xc0, 0x0c, 0, 16, 0, 1, 0, 0, 0, 0, 0, body.length + 1, body.length]);
  return Buffer.concat([head, body]);
}
