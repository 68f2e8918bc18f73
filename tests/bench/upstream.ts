/** The vendor that benchmarks stand on: constant answers, whole or streamed, as cheap as Node can give them. */
import { createServer } from 'node:http';

const chunkText = 'abcdefghij'.repeat(12);
const chunk = Buffer.from(
  `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"${chunkText}"},"finish_reason":null}]}\n\n`,
);
const tail = Buffer.from(
  'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' +
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":200,"total_tokens":300}}\n\n' +
    'data: [DONE]\n\n',
);
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

/**
 * `x-bench` cannot pass a gateway, so the prompt says what is wanted: `chunks=N` streams N chunks as fast as they are
 * taken, `hold` sends one chunk and stays silent, anything else is answered whole.
 */
const server = createServer((incoming, outgoing) => {
  const parts: Buffer[] = [];
  incoming.on('data', (part: Buffer) => void parts.push(part));
  incoming.on('end', () => {
    const body = Buffer.concat(parts).toString('latin1');
    const chunks = /chunks=(\d+)/.exec(body)?.[1];
    if (chunks === undefined && !body.includes('"hold')) {
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length });
      outgoing.end(whole);
      return;
    }
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    outgoing.write(chunk);
    if (chunks === undefined) return;
    let left = Number(chunks) - 1;
    const send = () => {
      // One chunk for each turn, as tokens come: a burst would be glued together on the way.
      for (; left > 0; left--) {
        if (!outgoing.write(chunk)) {
          left--;
          outgoing.once('drain', send);
          return;
        }
        if (left % 4 === 0) {
          left--;
          setImmediate(send);
          return;
        }
      }
      outgoing.end(tail);
    };
    send();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () =>
  process.send?.({ port: (server.address() as { port: number }).port }),
);
process.on('disconnect', () => process.exit(0));
