/** Writes a stream's frames at the directed pace, interrupts them as directed, and returns the written part. */
import type { ServerResponse } from 'node:http';
import type { Produced } from './counts.ts';
import type { Frame } from './protocol.ts';

export interface Plan {
  /** Delay between two pieces of the answer. */
  readonly chunkDelayMs: number;
  /** How it breaks after `afterChunks` pieces, or before its ending if it has fewer. */
  readonly fate: { readonly kind: 'cut' | 'stall' | 'error'; readonly afterChunks: number } | undefined;
  /** Omits the protocol's ending. */
  readonly noTerminal: boolean;
  /** The bytes of the error, given the number of frames sent. */
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

/** Closes the connection within an answer, after the pending bytes were sent. */
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

/** Writes the frames into an answer with a head; does not end it, except where the plan breaks it. */
export async function play(answer: ServerResponse, frames: Iterable<Frame>, plan: Plan): Promise<Played> {
  let chunks = 0;
  let count = 0;
  let text = 0;
  let reasoning = 0;
  let outcome: Played['outcome'] = 'complete';
  for (const frame of frames) {
    if (breaksAt(plan, frame, chunks)) {
      await meet(answer, plan, count);
      outcome = 'cut';
      break;
    }
    if (frame.ending && plan.noTerminal) {
      outcome = 'cut';
      continue;
    }
    if (frame.chunk && chunks++ > 0 && plan.chunkDelayMs > 0) await wait(answer, plan.chunkDelayMs);
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

function breaksAt({ fate }: Plan, frame: Frame, chunks: number): boolean {
  if (fate === undefined) return false;
  return frame.ending === true || (frame.chunk === true && chunks >= fate.afterChunks);
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
