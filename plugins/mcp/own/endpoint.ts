/** Serves the gateway's own tools at an address of their own, with the rights of the key and at no cost. */
import { createMcpHandler, ProtocolError, Server } from '@modelcontextprotocol/server';
import type { Endpoint, Exchange, Host } from '../../../core/contract/contract.ts';
import { readBody } from '../../../core/json/request-body.ts';
import { invalidParams, rpcError } from '../errors.ts';
import type { Running } from '../running.ts';
import { answered } from '../serve.ts';
import { Failed, ownTools } from './tools.ts';

const ownPath = '/mcp/gateway';
const members = new Set(['jsonrpc', 'id', 'method', 'params']);

export function ownEndpoint(host: Host, running: Running, most: () => number): Endpoint {
  return {
    method: 'POST',
    path: ownPath,
    operation: 'usage',
    body: 'whole',
    describes: [
      {
        summary:
          "Calls the gateway's own tools, by MCP: what a call cost, what the account has used, models and prices.",
        body: { types: ['application/json'], required: ['jsonrpc', 'method'] },
        answers: ['application/json', 'text/event-stream'],
      },
    ],
    handle(exchange) {
      const message = readBody(exchange.request.body, members).json;
      const signal = running.enter(exchange, message, most());
      const handler = createMcpHandler(() => serverOf(exchange, host), { legacy: 'stateless', maxSubscriptions: 1 });
      return answered(handler, exchange, message, signal);
    },
    renderError: rpcError,
  };
}

function serverOf(exchange: Exchange, host: Host): Server {
  const server = new Server({ name: 'model-gateway', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', async () => ({
    tools: ownTools.map(({ name, description, properties, required = [] }) => ({
      ...{ name, description, inputSchema: { type: 'object' as const, properties, required: [...required] } },
      annotations: { readOnlyHint: true },
    })),
  }));
  server.setRequestHandler('tools/call', async ({ params }) => {
    const tool = ownTools.find(({ name }) => name === params.name);
    if (tool === undefined) throw new ProtocolError(invalidParams, 'Unknown tool');
    try {
      const result = await tool.run(params.arguments ?? {}, exchange, host);
      return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: { ...result } };
    } catch (error) {
      if (error instanceof Failed) return { content: [{ type: 'text', text: error.message }], isError: true };
      exchange.log.error({ error }, 'a tool of the gateway itself failed');
      throw new ProtocolError(-32_603, 'The tool failed.');
    }
  });
  return server;
}
