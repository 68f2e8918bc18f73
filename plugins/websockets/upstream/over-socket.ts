/** The innermost plugin step of a turn: sends it over WebSocket if the upstream supports that. */
import { type Endpoint, type Exchange, type Next, upstreamRequest } from '../../../core/contract/contract.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { defineOperatorEvent, recordEvent } from '../../common/domain/timeline.ts';
import { target } from '../../common/domain/upstreams.ts';
import { upstreamTurns } from './upstream-turns.ts';

export function takesTurns({ method, path }: Endpoint): boolean {
  return method === 'POST' && path === '/v1/responses';
}

export function overSocket(exchange: Exchange, next: Next, clock: Pick<Clock, 'now'>): Promise<Answer> {
  const turns = exchange.find(upstreamTurns);
  const request = turns === undefined ? undefined : exchange.find(upstreamRequest);
  const { protocol, traits } = exchange.get(target);
  if (turns === undefined || request === undefined || traits.websocket !== true) return next();
  if (protocol !== 'responses' || !request.stream || !isTurn(request.url)) return next();
  request.sendOver = (sending) =>
    turns.send(request, sending, ({ data, isContinuation }, body) =>
      recordEvent(exchange, clock.now(), sentEvent, [isContinuation, data.length, body.length]),
    );
  return next();
}

/** Not a count of tokens, nor a compaction. */
function isTurn(url: string): boolean {
  return url.split('?', 1)[0]!.endsWith('/responses');
}

const sentEvent = defineOperatorEvent('websockets.sent', (isContinuation: boolean, sent: number, whole: number) =>
  isContinuation
    ? `sent over WebSocket: ${sent} bytes, as the upstream's connection has the rest of ${whole}`
    : `sent over WebSocket: ${sent} bytes`,
);
