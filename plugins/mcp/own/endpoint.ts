/** Serves the gateway's own tools at an address of their own, with the rights of the key and at no cost. */
import type { Endpoint, Host } from '../../../core/contract/contract.ts';
import { readBody } from '../../../core/json/request-body.ts';
import type { McpConfig } from '../config.ts';
import { loaded } from '../generation.ts';
import { errorsOf } from '../protected.ts';
import type { Running } from '../running.ts';

const ownPath = '/mcp/gateway';
const members = new Set(['jsonrpc', 'id', 'method', 'params']);

export function ownEndpoint(host: Host, running: Running, settings: () => McpConfig): Endpoint {
  return {
    method: 'POST',
    path: ownPath,
    operation: 'usage',
    body: 'whole',
    describes: [
      {
        summary:
          "Calls the gateway's own tools, by MCP: what a call cost, what the account has used, models and prices, and a key with a cap.",
        body: { types: ['application/json'], required: ['jsonrpc', 'method'] },
        answers: ['application/json', 'text/event-stream'],
      },
    ],
    async handle(exchange) {
      const message = readBody(exchange.request.body, members).json;
      const signal = running.enter(exchange, message, settings().per_account);
      const { answerOwn } = await loaded();
      return answerOwn(exchange, host, message, signal, settings().keys);
    },
    renderError: errorsOf(host),
    keepsErrorForm: true,
  };
}
