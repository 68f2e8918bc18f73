/** A stand-in for a vendor's embedding model. */
import { createServer, type Server, type ServerResponse } from 'node:http';

/** A model whose answers can be held back. Each text costs one token. */
export async function startModel() {
  const seen: string[][] = [];
  let held: (() => void)[] | undefined;
  const answer = (response: ServerResponse, input: readonly string[]) => {
    const vector = Buffer.from(new Float32Array([1, 2]).buffer).toString('base64');
    const data = input.map((_, index) => ({ object: 'embedding', index, embedding: vector }));
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ object: 'list', data, usage: { prompt_tokens: input.length, total_tokens: input.length } }),
    );
  };
  const server: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { input } = JSON.parse(Buffer.concat(parts).toString()) as { input: string[] };
      seen.push(input);
      if (held === undefined) answer(response, input);
      else held.push(() => answer(response, input));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/v1`,
    seen,
    hold: () => {
      held = [];
    },
    release: () => {
      for (const one of held ?? []) one();
      held = undefined;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
