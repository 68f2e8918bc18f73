/** Streams one picture: previews, then the picture; billed by the sent frames, interrupted as directed. */
import type { ServerResponse } from 'node:http';
import type { Usage } from '../../common/domain/usage.ts';
import { orderedFault } from '../fault.ts';
import { type Plan, play } from '../paced-stream.ts';
import type { Frame } from '../protocol.ts';
import type { Directives } from '../script/directives.ts';
import type { ImageParams, Picture, PictureStreaming } from './dialect.ts';

export interface Streamed {
  readonly usage: Usage;
  readonly outcome: 'complete' | 'cut';
}

/** Writes the head too. `created` in seconds. */
export async function streamPicture(
  answer: ServerResponse,
  streaming: PictureStreaming,
  { params, picture, created }: { readonly params: ImageParams; readonly picture: Picture; readonly created: number },
  usualDelayMs: number,
): Promise<Streamed> {
  const { directives } = params;
  answer.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  if (directives.first_error !== undefined) {
    answer.end(streaming.fault(orderedFault(directives.first_error)));
    return { usage: {}, outcome: 'cut' };
  }
  const previews = Array.from({ length: params.previews ?? 0 }, (_, index): Frame => {
    return { bytes: streaming.preview(params, picture, index, created), chunk: true, text: 1 };
  });
  const end: Frame = { bytes: streaming.completed(params, picture, created), ending: true };
  const plan: Plan = {
    chunkDelayMs: directives.chunk_delay ?? usualDelayMs,
    fate: fateOf(directives, previews.length),
    noTerminal: directives.no_terminal === true,
    errorBytes: () => streaming.fault(orderedFault(directives.mid_error ?? 500)),
  };
  const { produced, outcome } = await play(answer, [...previews, end], plan);
  answer.end();
  const isWhole = outcome === 'complete';
  return { usage: isWhole ? streaming.usage(params) : streaming.usageOfPreviews(params, produced.text), outcome };
}

function fateOf({ cut_after: cutAfter, stall, mid_error: midError }: Directives, previews: number): Plan['fate'] {
  if (cutAfter !== undefined) return { kind: 'cut', afterChunks: cutAfter };
  if (stall !== undefined) return { kind: 'stall', afterChunks: stall };
  return midError === undefined ? undefined : { kind: 'error', afterChunks: Math.ceil(previews / 2) };
}
