/** A vendor that takes its time: each chat completion is answered whole, after `vendorMs`. */
import { createServer, type Server } from 'node:http';

export const vendorMs = 25;

const answer = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'a'.repeat(120) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 200, completion_tokens: 30, total_tokens: 230 },
});

/** Listens on a free port of 127.0.0.1. */
export async function startSlowVendor(): Promise<Server> {
  const vendor = createServer({ keepAliveTimeout: 600_000 }, (request, reply) => {
    request.resume();
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) };
    setTimeout(() => reply.writeHead(200, headers).end(answer), vendorMs);
  });
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  return vendor;
}
