/** Writes a stream's frames at the ordered pace, breaks them where ordered, and tells what was produced. */
import type { ServerResponse } from 'node:http';
import type { Produced } from './counts.ts';
import type { Frame } from './protocol.ts';

export interface Plan {
  /** Between two pieces of the answer. */
  readonly chunkDelayMs: number;
  /** How it breaks once `afterChunks` pieces went out, or before its ending if it has fewer. */
  readonly fate: { readonly kind: 'cut' | 'stall' | 'error'; readonly afterChunks: number } | undefined;
  /** Leaves the protocol's ending out. */
  readonly noTerminal: boolean;
  /** The bytes of the error, given how many frames went out. */
  readonly errorBytes: (frames: number) => string;
}

export interface Played {
  readonly produced: Produced;
  readonly outcome: 'complete' | 'cut';
}

/** Resolves after a while, or at once when the connection closes. */
export function wait(answer: ServerResponse, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    if (answer.destroyed) return resolve();
    const finish = () => {
      clearTimeout(timer);
      answer.off('close', finish);
      resolve();
    };
    const timer = setTimeout(finish, milliseconds);
    answer.once('close', finish);
  });
}

/** Resolves when the connection closes. */
export function untilClosed(answer: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (answer.destroyed) return resolve();
    answer.once('close', resolve);
  });
}

/** Closes the connection in mid-answer, after what was written has left. */
export async function cutOff(answer: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
  const { socket } = answer;
  if (socket !== null && socket.writableLength > 0 && !socket.destroyed) {
    await new Promise<void>((resolve) => {
      socket.once('drain', resolve);
      socket.once('close', () => resolve());
    });
  }
  answer.destroy();
}

/** Writes the frames into an answer whose head was written; does not end it, except where the plan breaks it. */
export async function play(answer: ServerResponse, frames: Iterable<Frame>, plan: Plan): Promise<Played> {
  let chunks = 0;
  let count = 0;
  let text = 0;
  let reasoning = 0;
  let outcome: Played['outcome'] = 'complete';
  for (const frame of frames) {
    if (plan.fate !== undefined && (frame.ending || (frame.chunk && chunks >= plan.fate.afterChunks))) {
      await meet(answer, plan, count);
      outcome = 'cut';
      break;
    }
    if (frame.ending && plan.noTerminal) {
      outcome = 'cut';
      continue;
    }
    if (frame.chunk) {
      if (chunks > 0 && plan.chunkDelayMs > 0) await wait(answer, plan.chunkDelayMs);
      chunks++;
    }
    if (answer.destroyed) {
      outcome = 'cut';
      break;
    }
    text += frame.text ?? 0;
    reasoning += frame.reasoning ?? 0;
    count++;
    if (!answer.write(frame.bytes)) await drained(answer);
  }
  return { produced: { text, reasoning }, outcome };
}

async function meet(answer: ServerResponse, plan: Plan, frames: number): Promise<void> {
  if (plan.fate?.kind === 'cut') await cutOff(answer);
  if (plan.fate?.kind === 'stall') await untilClosed(answer);
  if (plan.fate?.kind === 'error') answer.write(plan.errorBytes(frames));
}

function drained(answer: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (answer.destroyed || !answer.writableNeedDrain) return resolve();
    const finish = () => {
      answer.off('drain', finish);
      answer.off('close', finish);
      resolve();
    };
    answer.once('drain', finish);
    answer.once('close', finish);
  });
}
