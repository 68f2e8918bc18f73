/** Answers a request to the gateway's own tools, by the library of the protocol. */
import { createMcpHandler, ProtocolError, Server, type Tool } from '@modelcontextprotocol/server';
import type { Exchange, Host } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import { invalidParams } from '../errors.ts';
import { answered } from '../serve.ts';
import { createKey } from './keys.ts';
import { Failed, type OwnTool, ownTools } from './tools.ts';

/** `makesKeys`: whether keys may make others. */
export function answerOwn(
  ...[exchange, host, message, signal, makesKeys]: [Exchange, Host, JsonObject, AbortSignal, makesKeys: boolean]
): Promise<Answer> {
  const tools = makesKeys ? [...ownTools, createKey] : ownTools;
  const handler = createMcpHandler(() => serverOf(tools, exchange, host), { legacy: 'stateless', maxSubscriptions: 1 });
  return answered(handler, exchange, message, signal);
}

function serverOf(own: readonly OwnTool[], exchange: Exchange, host: Host): Server {
  const server = new Server({ name: 'model-gateway', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', async () => ({
    tools: own.map(({ name, description, properties, required = [], changes }) => ({
      ...({
        name,
        description,
        inputSchema: { type: 'object', properties, required: [...required] } as Tool['inputSchema'],
      } as const),
      annotations: { readOnlyHint: changes !== true },
    })),
  }));
  server.setRequestHandler('tools/call', async ({ params }) => {
    const tool = own.find(({ name }) => name === params.name);
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
