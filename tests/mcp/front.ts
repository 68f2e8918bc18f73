/** What stands between the suite and the gateway: adds the key, and gives names of the server's things the prefix that they have here, as the suite's are fixed. */
import { request as send } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listen, type Started } from './server.ts';

const own = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'accept-encoding']);

export function startFront(gateway: string, server: string, key: string): Promise<Started> {
  return listen(async (request, body) => {
    const headers: Record<string, string> = { authorization: `Bearer ${key}`, host: request.headers.get('host') ?? '' };
    for (const [name, value] of request.headers) if (!own.has(name)) headers[name] = value;
    const named = headers['mcp-name'];
    if (named !== undefined) headers['mcp-name'] = prefixed(server, named);
    const sent = body === '' ? '' : prefixedBody(server, body);
    const given = await ask(new URL('/mcp', gateway), request.method, headers, sent);
    const shown = given.body.replaceAll(`${server}__`, '').replaceAll(`${server}+`, '');
    return new Response(given.status === 202 || given.status === 204 ? null : shown, given);
  });
}

/** By the module that sends the header `host` as it is given. */
async function ask(url: URL, method: string, headers: Record<string, string>, body: string) {
  const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    send(url, { method, headers }, resolve).on('error', reject).end(body);
  });
  const text = (await buffer(answer)).toString();
  const kept = Object.entries(answer.headers).filter(([name]) => !own.has(name));
  return { status: answer.statusCode!, headers: Object.fromEntries(kept) as Record<string, string>, body: text };
}

const prefixed = (server: string, name: string) => (name.includes('://') ? `${server}+${name}` : `${server}__${name}`);

function prefixedBody(server: string, text: string): string {
  const message = JSON.parse(text) as { method?: string; params?: Record<string, unknown> };
  const { params } = message;
  if (params === undefined) return text;
  const calls = message.method === 'tools/call' || message.method === 'prompts/get';
  if (calls && typeof params['name'] === 'string') params['name'] = prefixed(server, params['name']);
  if (typeof params['uri'] === 'string') params['uri'] = prefixed(server, params['uri']);
  const ref = params['ref'] as Record<string, string> | undefined;
  for (const member of ['name', 'uri']) if (ref?.[member] !== undefined) ref[member] = prefixed(server, ref[member]);
  return JSON.stringify(message);
}
