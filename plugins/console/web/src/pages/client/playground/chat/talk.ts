/** Calls the gateway as any program would: a streamed answer with its time, tokens and cost. */
import type { ApiCall } from '../../../../calls/call.ts';
import { sendCall } from '../../../../calls/send.ts';
import { grown, type ProtocolName } from './protocols.ts';
import { noTurn, type Turn } from './turn.ts';

/** Asks, and yields the turn as it grows. */
export async function* talk(
  protocol: ProtocolName,
  call: ApiCall,
  key: string,
  signal: AbortSignal,
): AsyncGenerator<Turn> {
  const begun = performance.now();
  const answer = await sendCall(call, key, signal);
  let turn: Turn = { ...noTurn, requestId: answer.headers.get('x-request-id') ?? undefined };
  for await (const data of eventsOf(answer.body!)) {
    if (data === '[DONE]') break;
    turn = grown(protocol, { ...turn, firstByteMs: turn.firstByteMs ?? performance.now() - begun }, data);
    yield turn;
  }
  yield { ...turn, totalMs: performance.now() - begun };
}

/** Data of server-sent events, however the network cut them. Comments are left out. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim();
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
