/** The load of many slow streams: each connection asks once and reads its answer to the end; some look when chunks come. */
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { stampDigits, stampMark } from './pacer.ts';

export interface CrowdLoad {
  readonly port: number;
  readonly key: string;
  readonly body: string;
  readonly path: string;
  readonly connections: number;
}

export interface CrowdResult {
  /** From the first request to the end of the last answer. */
  readonly milliseconds: number;
  readonly failures: number;
  /** From a chunk's writing by the vendor to its arrival here, of one stream among `lookedAt`. */
  readonly lateMs: readonly number[];
}

const lookedAt = 20;
/** Streams do not all begin in the same moment. */
const beginTogether = 50;
const answerEnd = Buffer.from('\r\n0\r\n\r\n');

async function run({ port, key, path, body, connections }: CrowdLoad): Promise<CrowdResult> {
  const lateMs: number[] = [];
  const request = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const startedAt = performance.now();
  const answers: Promise<boolean>[] = [];
  for (let index = 0; index < connections; index++) {
    answers.push(readOnce(port, request, index % lookedAt === 0 ? lateMs : undefined));
    if (index % beginTogether === beginTogether - 1) await pause(10);
  }
  const whole = await Promise.all(answers);
  return { milliseconds: performance.now() - startedAt, failures: whole.filter((isWhole) => !isWhole).length, lateMs };
}

/** Whether the answer was a success and came whole. */
function readOnce(port: number, request: string, lateMs: number[] | undefined): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  return new Promise((resolve) => {
    let isWell: boolean | undefined;
    socket.on('connect', () => void socket.write(request));
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
    socket.on('data', (data: Buffer) => {
      isWell ??= data.toString('latin1', 0, 12) === 'HTTP/1.1 200';
      if (lateMs !== undefined) noteStamps(data, lateMs);
      if (!data.subarray(-answerEnd.length).equals(answerEnd)) return;
      resolve(isWell);
      socket.destroy();
    });
  });
}

function noteStamps(data: Buffer, lateMs: number[]): void {
  const now = Number(process.hrtime.bigint() / 1000n);
  for (let at = data.indexOf(stampMark); at !== -1; at = data.indexOf(stampMark, at + 1)) {
    const start = at + stampMark.length;
    const writtenAt = Number(data.toString('latin1', start, start + stampDigits));
    if (writtenAt > 0) lateMs.push((now - writtenAt) / 1_000);
  }
}

if (process.send !== undefined && process.argv[2] !== undefined) {
  process.send(await run(JSON.parse(process.argv[2]) as CrowdLoad), () => process.exit(0));
}
