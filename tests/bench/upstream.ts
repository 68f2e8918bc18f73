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

const whole = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(600) }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 100, completion_tokens: 200, total_tokens: 300 },
  }),
);

function scriptFor(path: string): Script {
  if (path.startsWith('/v1/chat/')) return scripts.chat;
  if (path.startsWith('/v1/messages')) return scripts.messages;
  return path.startsWith('/v1/responses') ? scripts.responses : scripts.gemini;
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
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length });
      outgoing.end(whole);
      return;
    }
    const script = scriptFor(incoming.url!);
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
