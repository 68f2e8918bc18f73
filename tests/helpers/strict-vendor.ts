/** A vendor on loopback that takes one key, and nothing but a list of models and chats at their exact paths. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface StrictVendor extends AsyncDisposable {
  readonly origin: string;
  /** The base URL that a client of it would be configured with. */
  readonly baseUrl: string;
  /** The key that it takes; it can be changed. */
  key: string;
  /** Method, path and key of each request. */
  readonly seen: { readonly path: string; readonly key: string | undefined }[];
  close(): Promise<void>;
}

export async function startStrictVendor(key: string, models: readonly string[]): Promise<StrictVendor> {
  const seen: { path: string; key: string | undefined }[] = [];
  const server = createServer(async (request, response) => {
    const path = `${request.method} ${request.url}`;
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    seen.push({ path, key: given });
    const reply = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (path !== 'GET /strict/v1/models' && path !== 'POST /strict/v1/chat/completions')
      return reply(404, { error: { message: `Unknown request URL: ${path}` } });
    if (given !== vendor.key) return reply(401, { error: { message: `Incorrect API key provided: ${given}.` } });
    if (path.startsWith('GET')) return reply(200, { data: models.map((id) => ({ id, object: 'model' })) });
    const asked = JSON.parse(Buffer.concat(parts).toString()) as { model: string; stream?: boolean };
    if (!models.includes(asked.model))
      return reply(404, { error: { message: `The model ${asked.model} is not there.` } });
    if (asked.stream === true) return stream(response, asked.model);
    const message = { role: 'assistant', content: 'Hello from the strict vendor' };
    return reply(200, {
      ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_800_000_000, model: asked.model },
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 },
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const vendor: StrictVendor = {
    origin,
    baseUrl: `${origin}/strict/v1`,
    key,
    seen,
    close,
    [Symbol.asyncDispose]: close,
  };
  return vendor;
}

function stream(response: ServerResponse, model: string): void {
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_800_000_000, model };
  const chunks = [
    { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello from the strict vendor' } }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...chunk, choices: [], usage: { prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 } },
  ];
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`);
}
