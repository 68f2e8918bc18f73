/** One answer of the vendor, whole or streamed, and its entry on the bill. */

import type { ServerResponse } from 'node:http';
import { countsOf, type Produced, usageOf } from './counts.ts';
import { orderedFault } from './fault.ts';
import { cutOff, type Plan, type Played, play, untilClosed, wait } from './paced-stream.ts';
import type { Frame, Protocol, Turn } from './protocol.ts';
import { scriptOf } from './script/script.ts';
import { jsonHeaders, sendJson, type Vendor } from './vendor-state.ts';

type Charge = (played: Played) => void;
const nothing: Produced = { text: 0, reasoning: 0 };

/**
 * Answers and bills the output until the end or until the connection closed. Resolves with the turn if all of it was
 * sent, otherwise undefined.
 */
export async function run(
  vendor: Vendor,
  protocol: Protocol,
  request: Pick<Turn, 'call' | 'modelRequest' | 'body' | 'id'>,
  answer: ServerResponse,
  requestId: string | undefined,
): Promise<Turn | undefined> {
  const startedAt = vendor.now();
  const prompt = vendor.cache.count(request.modelRequest, startedAt);
  const script = scriptOf(request.modelRequest);
  const all: Produced = { text: script.textCharacters, reasoning: script.reasoningCharacters };
  const turn: Turn = { ...request, script, prompt, counts: countsOf(prompt, all), startedAt };
  vendor.bill.opened();
  answer.once('close', () => vendor.bill.closed());
  const enter = chargeOf(vendor, turn, answer, requestId);
  let outcome: Played['outcome'] | undefined;
  const charge: Charge = (played) => {
    outcome = played.outcome;
    enter(played);
  };
  const delayMs = turn.modelRequest.directives.delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  if (answer.destroyed) charge({ produced: nothing, outcome: 'cut' });
  else if (turn.modelRequest.stream) await sendStream(vendor, protocol, turn, answer, charge);
  else await sendWhole(protocol, turn, all, answer, charge);
  return outcome === 'complete' ? turn : undefined;
}

/** Adds the answer to the bill once; an answer that is not sent completely becomes cut. */
function chargeOf(vendor: Vendor, turn: Turn, answer: ServerResponse, requestId: string | undefined): Charge {
  return ({ produced, outcome }) => {
    const entry = vendor.bill.add({
      at: turn.startedAt,
      endedAt: vendor.now(),
      protocol: turn.modelRequest.protocol,
      model: turn.modelRequest.model,
      requestId,
      answerId: turn.id,
      usage: usageOf(countsOf(turn.prompt, produced)),
      outcome,
    });
    answer.once('close', () => {
      if (!answer.writableFinished) vendor.bill.turnedOutCut(entry);
    });
  };
}

async function sendWhole(
  protocol: Protocol,
  turn: Turn,
  produced: Produced,
  answer: ServerResponse,
  charge: Charge,
): Promise<void> {
  const { stall, cut_after: cutAfter } = turn.modelRequest.directives;
  if (stall !== undefined) {
    await untilClosed(answer);
    return charge({ produced: nothing, outcome: 'cut' });
  }
  const body = protocol.whole(turn);
  charge({ produced, outcome: cutAfter === undefined ? 'complete' : 'cut' });
  if (cutAfter === undefined) return sendJson(answer, 200, protocol.headers(turn.id), body);
  answer.writeHead(200, jsonHeaders(protocol.headers(turn.id), body));
  answer.write(body.slice(0, body.length >> 1));
  await cutOff(answer);
}

async function sendStream(
  vendor: Vendor,
  protocol: Protocol,
  turn: Turn,
  answer: ServerResponse,
  charge: Charge,
): Promise<void> {
  const { directives } = turn.modelRequest;
  answer.writeHead(200, {
    ...protocol.headers(turn.id),
    'content-type': protocol.streamType(turn.call),
    'cache-control': 'no-cache',
  });
  if (directives.first_error !== undefined) {
    answer.end(protocol.streamFault(orderedFault(directives.first_error), turn, 0));
    return;
  }
  const frames = directives.mid_error === undefined ? protocol.stream(turn) : [...protocol.stream(turn)];
  const plan: Plan = {
    chunkDelayMs: directives.chunk_delay ?? vendor.chunkMs,
    fate: fateOf(turn, frames),
    noTerminal: directives.no_terminal === true,
    errorBytes: (count) => protocol.streamFault(orderedFault(directives.mid_error ?? 500), turn, count),
  };
  charge(await play(answer, frames, plan));
  answer.end();
}

function fateOf({ modelRequest: { directives } }: Turn, frames: Iterable<Frame>): Plan['fate'] {
  if (directives.cut_after !== undefined) return { kind: 'cut', afterChunks: directives.cut_after };
  if (directives.stall !== undefined) return { kind: 'stall', afterChunks: directives.stall };
  if (directives.mid_error === undefined) return undefined;
  const chunks = [...frames].filter((frame) => frame.chunk).length;
  return { kind: 'error', afterChunks: Math.ceil(chunks / 2) };
}
