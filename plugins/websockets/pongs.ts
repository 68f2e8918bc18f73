/** Answers pings: one pong at a time is under way, and of the pings meanwhile the last is answered (RFC 6455, section 5.5.3). */
import type { WebSocket } from 'ws';

export function answerPings(socket: WebSocket): void {
  let isUnderWay = false;
  let last: Buffer | undefined;
  const answer = (data: Buffer) => {
    isUnderWay = true;
    socket.pong(data, undefined, () => {
      isUnderWay = false;
      const next = last;
      last = undefined;
      if (next !== undefined && socket.readyState === socket.OPEN) answer(next);
    });
  };
  socket.on('ping', (data: Buffer) => {
    if (isUnderWay) last = Buffer.from(data);
    else answer(data);
  });
}
