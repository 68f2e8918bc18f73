/** The vendor that benchmarks stand on: constant answers in four protocols, whole or streamed, as cheap as Node can give them. */
import { createServer, type ServerResponse } from 'node:http';
import { Pacer } from './pacer.ts';
import { names, type ProtocolName, wordsOf } from './words.ts';

/** What of a stream is the same each time. */
interface Script {
  readonly head: Buffer;
  readonly chunk: Buffer;
  /** After so many chunks; made once for each number. */
  readonly tail: (chunks: number) => Buffer;
  readonly pacer: Pacer;
}

const text = 'abcdefghij'.repeat(12);

function once(make: (chunks: number) => Buffer): (chunks: number) => Buffer {
  const made = new Map<number, Buffer>();
  return (chunks) => {
    const known = made.get(chunks) ?? make(chunks);
    made.set(chunks, known);
    return known;
  };
}

const scripts = Object.fromEntries(
  names.map((name) => {
    const { head, delta, tail } = wordsOf(name);
    const chunk = delta('text', text)!;
    const stamped = (stamp: string) => Buffer.from(chunk.replace(text.slice(0, stamp.length), stamp));
    const script: Script = {
      head: Buffer.from(head('text') + chunk),
      chunk: Buffer.from(chunk),
      tail: once((chunks) => Buffer.from(tail(text.repeat(chunks)))),
      pacer: new Pacer(stamped),
    };
    return [name, script];
  }),
) as Record<ProtocolName, Script>;

const words = 'x'.repeat(600);
const usage = { input_tokens: 100, output_tokens: 200 };
const wholes: Record<ProtocolName, object> = {
  chat: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: words }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100, completion_tokens: 200, total_tokens: 300 },
  },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: words }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  },
  responses: {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'completed',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', annotations: [], logprobs: [], text: words }],
      },
    ],
    usage: { ...usage, total_tokens: 300 },
  },
  gemini: {
    candidates: [{ content: { parts: [{ text: words }], role: 'model' }, index: 0, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 200, totalTokenCount: 300 },
    modelVersion: 'm',
    responseId: 'r1',
  },
};
/** Answers that are not streamed. */
const whole = Object.fromEntries(
  Object.entries(wholes).map(([name, answer]) => [name, Buffer.from(JSON.stringify(answer))]),
) as Record<ProtocolName, Buffer>;

function protocolOf(path: string): ProtocolName {
  if (path.startsWith('/v1/chat/')) return 'chat';
  if (path.startsWith('/v1/messages')) return 'messages';
  return path.startsWith('/v1/responses') ? 'responses' : 'gemini';
}

/** Writes as fast as it is taken, four chunks in each turn: a burst would be glued together on the way. */
function send({ chunk, tail }: Script, outgoing: ServerResponse, chunks: number): void {
  let left = chunks - 1;
  const turn = () => {
    for (; left > 0; left--) {
      if (!outgoing.write(chunk)) {
        left--;
        outgoing.once('drain', turn);
        return;
      }
      if (left % 4 === 0) {
        left--;
        setImmediate(turn);
        return;
      }
    }
    outgoing.end(tail(chunks));
  };
  turn();
}

/**
 * Headers of the benchmark's own cannot pass a gateway, so the prompt says what is wanted: `chunks=N` streams N chunks as
 * fast as they are taken, `chunks=N paced` at the pace of tokens, `hold` sends one chunk and stays silent, anything else
 * is answered whole.
 */
const server = createServer((incoming, outgoing) => {
  const parts: Buffer[] = [];
  incoming.on('data', (part: Buffer) => void parts.push(part));
  incoming.on('end', () => {
    const body = Buffer.concat(parts).toString('latin1');
    const wanted = /chunks=(\d+)( paced)?/.exec(body);
    if (wanted === null && !body.includes('"hold')) {
      const answer = whole[protocolOf(incoming.url!)];
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
      outgoing.end(answer);
      return;
    }
    const script = scripts[protocolOf(incoming.url!)];
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    outgoing.write(script.head);
    if (wanted === null) return;
    const chunks = Number(wanted[1]);
    if (wanted[2] === undefined) send(script, outgoing, chunks);
    else script.pacer.add(outgoing, chunks - 1, script.tail(chunks));
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () =>
  process.send?.({ port: (server.address() as { port: number }).port }),
);
process.on('disconnect', () => process.exit(0));
