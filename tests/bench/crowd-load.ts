/** The load of many slow streams: each connection asks once and reads its answer to the end; some look when chunks come. */
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { AnswerEnd } from './answer-end.ts';
import { stampDigits, stampMark } from './pacer.ts';

export interface CrowdLoad {
  readonly port: number;
  readonly key: string;
  readonly body: string;
  readonly path: string;
  readonly connections: number;
}

export interface CrowdResult {
  readonly failures: number;
  /** Chunks of the sampled streams. */
  readonly chunks: readonly Seen[];
}

/** Microseconds of the machine's monotonic clock: when a chunk came, and how long after it was written. */
export interface Seen {
  readonly at: number;
  readonly late: number;
}

/** One stream among so many is looked at. */
export const lookedAt = 20;
/** Streams do not all begin in the same moment. */
const beginTogether = 50;

async function run({ port, key, path, body, connections }: CrowdLoad): Promise<CrowdResult> {
  const chunks: Seen[] = [];
  const request = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const answers: Promise<boolean>[] = [];
  for (let index = 0; index < connections; index++) {
    answers.push(readOnce(port, request, index % lookedAt === 0 ? chunks : undefined));
    if (index % beginTogether === beginTogether - 1) await pause(10);
  }
  const whole = await Promise.all(answers);
  return { failures: whole.filter((isWhole) => !isWhole).length, chunks };
}

/** Whether the answer was a success and came whole. */
function readOnce(port: number, request: string, chunks: Seen[] | undefined): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  return new Promise((resolve) => {
    const end = new AnswerEnd();
    let isWell: boolean | undefined;
    socket.on('connect', () => void socket.write(request));
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
    socket.on('data', (data: Buffer) => {
      isWell ??= data.toString('latin1', 0, 12) === 'HTTP/1.1 200';
      if (chunks !== undefined) note(data, chunks);
      if (!end.isAt(data)) return;
      resolve(isWell);
      socket.destroy();
    });
  });
}

function note(data: Buffer, chunks: Seen[]): void {
  const now = Number(process.hrtime.bigint() / 1_000n);
  for (let found = data.indexOf(stampMark); found !== -1; found = data.indexOf(stampMark, found + 1)) {
    const start = found + stampMark.length;
    const writtenAt = Number(data.toString('latin1', start, start + stampDigits));
    if (writtenAt > 0) chunks.push({ at: now, late: now - writtenAt });
  }
}

if (process.send !== undefined && process.argv[2] !== undefined) {
  process.send(await run(JSON.parse(process.argv[2]) as CrowdLoad), () => process.exit(0));
}
