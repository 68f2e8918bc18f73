/** The same request, thousands of times over a few kept-alive connections: a client that costs a test little beside the gateway. */
import { connect } from 'node:net';

interface Often {
  readonly origin: string;
  readonly key: string;
  readonly body: object;
  readonly connections: number;
  readonly calls: number;
}

interface Answers {
  /** Answers by status and `x-cache`. */
  readonly how: Readonly<Record<string, number>>;
  /** The last request's id of each of these. */
  readonly sample: Readonly<Record<string, string>>;
}

/** Each connection sends its next request when it has its answer, which has a length or ends by an empty chunk. */
export async function askOften({ origin, key, body, connections, calls }: Often): Promise<Answers> {
  const text = JSON.stringify(body);
  const head = ['POST /v1/chat/completions HTTP/1.1', 'host: test', `authorization: Bearer ${key}`];
  const request = `${[...head, 'content-type: application/json', `content-length: ${Buffer.byteLength(text)}`].join('\r\n')}\r\n\r\n${text}`;
  const how: Record<string, number> = {};
  const sample: Record<string, string> = {};
  let left = calls;
  const port = Number(new URL(origin).port);
  await Promise.all(
    Array.from({ length: Math.min(connections, calls) }, async () => {
      const socket = connect(port, '127.0.0.1');
      const done = Promise.withResolvers<void>();
      const send = () => {
        if (left-- > 0) socket.write(request);
        else socket.end(() => done.resolve());
      };
      let read = '';
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        read += chunk;
        const end = read.indexOf('\r\n\r\n');
        if (end < 0) return;
        const headers = read.slice(0, end);
        const length = headerOf(headers, 'content-length');
        if (length === '' ? !read.endsWith('\r\n0\r\n\r\n') : read.length < end + 4 + Number(length)) return;
        read = '';
        const kind = `${headers.slice(9, 12)} ${headerOf(headers, 'x-cache')}`;
        how[kind] = (how[kind] ?? 0) + 1;
        sample[kind] = headerOf(headers, 'x-request-id');
        send();
      });
      socket.on('error', done.reject).on('close', () => done.reject(new Error(`closed after ${read}`)));
      send();
      await done.promise;
    }),
  );
  return { how, sample };
}

function headerOf(headers: string, name: string): string {
  return new RegExp(`\\r\\n${name}: ([^\\r]*)`, 'i').exec(headers)?.[1] ?? '';
}
