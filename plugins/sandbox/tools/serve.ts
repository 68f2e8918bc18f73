/** Serves the tools of the sandbox by MCP, of the revision without sessions and of earlier ones. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Fault } from '../fault.ts';
import { parse, readBody } from '../request-body.ts';
import { sendJson, type Vendor } from '../vendor-state.ts';
import { sandboxTools } from './tools.ts';

type Handler = ReturnType<typeof import('@modelcontextprotocol/server')['createMcpHandler']>;
const handlers = new WeakMap<Vendor, Promise<Handler>>();

/** Never rejects. */
export async function serveTools(vendor: Vendor, request: IncomingMessage, answer: ServerResponse): Promise<void> {
  try {
    const bytes = await readBody(request);
    if (vendor.key !== undefined && request.headers.authorization !== `Bearer ${vendor.key}`)
      throw new Fault(401, 'The sandbox does not know this API key.');
    const handler = handlers.get(vendor) ?? openHandler(vendor);
    handlers.set(vendor, handler);
    const headers = Object.entries(request.headers).filter(([name]) => /^(?:accept|content-type|mcp-.+)$/.test(name));
    const asked = new Request('http://sandbox/mcp', { method: 'POST', headers: headers as [string, string][] });
    await send(await (await handler).fetch(asked, { parsedBody: parse(bytes) }), answer);
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const body = { jsonrpc: '2.0', id: null, error: { code: -32_600, message: fault.message } };
    sendJson(answer, fault.status, {}, JSON.stringify(body));
  }
}

async function send(given: Response, answer: ServerResponse): Promise<void> {
  const body = Buffer.from(await given.arrayBuffer());
  answer.writeHead(given.status, { ...Object.fromEntries(given.headers), 'content-length': body.length }).end(body);
}

/** The library is loaded by the first request: most gateways with a sandbox call no tool. */
async function openHandler(vendor: Vendor): Promise<Handler> {
  const { createMcpHandler, ProtocolError, Server } = await import('@modelcontextprotocol/server');
  return createMcpHandler(() => {
    const server = new Server({ name: 'sandbox', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', async () => ({
      tools: sandboxTools.map(({ name, description, properties, required }) => ({
        ...{ name, description, inputSchema: { type: 'object' as const, properties, required: [...required] } },
        annotations: { readOnlyHint: true },
      })),
    }));
    server.setRequestHandler('tools/call', async ({ params }) => {
      const tool = sandboxTools.find(({ name }) => name === params.name);
      if (tool === undefined) throw new ProtocolError(-32_602, 'Unknown tool');
      try {
        const result = tool.run(params.arguments ?? {}, vendor.now());
        return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: { ...result } };
      } catch (error) {
        return { content: [{ type: 'text', text: (error as Error).message }], isError: true };
      }
    });
    return server;
  });
}
