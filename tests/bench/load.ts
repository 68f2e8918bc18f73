/** The load: keep-alive connections that each send the next request when the last answer is whole. Raw sockets, no parser to pay for. */
import { connect, type Socket } from 'node:net';
import { AnswerEnd } from './answer-end.ts';

export interface Load {
  readonly port: number;
  readonly key: string;
  /** Each next request is sent with the next of them, and none with `key`. */
  readonly keys?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  readonly path: string;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly bytes: number;
  readonly failures: number;
}

/** Runs for `seconds` and counts whole answers with status 200. */
export async function run(load: Load): Promise<LoadResult> {
  const counts = { requests: 0, bytes: 0, failures: 0 };
  const more = Object.entries(load.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  const requests = (load.keys ?? [load.key]).map((key) =>
    Buffer.from(
      `POST ${load.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${more.join('')}authorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(load.body)}\r\n\r\n${load.body}`,
    ),
  );
  let sent = 0;
  const next = () => requests[sent++ % requests.length]!;
  const sockets = Array.from({ length: load.connections }, () => keepSending(load.port, next, counts));
  await new Promise((resolve) => setTimeout(resolve, load.seconds * 1_000));
  for (const socket of sockets) socket.destroy();
  return counts;
}

function keepSending(
  port: number,
  next: () => Buffer,
  counts: { requests: number; bytes: number; failures: number },
): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  let missing = -1;
  let chunked = false;
  const end = new AnswerEnd();
  socket.on('connect', () => void socket.write(next()));
  socket.on('error', () => {
    counts.failures++;
  });
  socket.on('data', (data: Buffer) => {
    counts.bytes += data.length;
    let body = data.length;
    if (missing < 0 && !chunked) {
      const headEnd = data.indexOf('\r\n\r\n');
      const head = data.toString('latin1', 0, headEnd);
      if (!head.startsWith('HTTP/1.1 200')) counts.failures++;
      chunked = /transfer-encoding: chunked/i.test(head);
      missing = chunked ? -1 : Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      body = data.length - headEnd - 4;
    }
    missing -= body;
    if (chunked ? !end.isAt(data) : missing > 0) return;
    missing = -1;
    chunked = false;
    counts.requests++;
    socket.write(next());
  });
  return socket;
}

/** Milliseconds from the request to the first byte of the answer's body, one request after another on one connection each. */
export async function firstBytes(load: Omit<Load, 'connections' | 'seconds'>, times: number): Promise<number[]> {
  const results: number[] = [];
  for (let index = 0; index < times; index++) {
    const started = performance.now();
    const answer = await fetch(`http://127.0.0.1:${load.port}${load.path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${load.key}`, 'content-type': 'application/json' },
      body: load.body,
    });
    const reader = answer.body!.getReader();
    await reader.read();
    results.push(performance.now() - started);
    while (!(await reader.read()).done);
  }
  return results;
}

if (process.send !== undefined && process.argv[2] !== undefined) {
  const load = JSON.parse(process.argv[2]) as Load & { firstBytes?: number };
  const result = load.firstBytes === undefined ? await run(load) : await firstBytes(load, load.firstBytes);
  process.send(result, () => process.exit(0));
}
