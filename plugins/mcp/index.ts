/** MCP: one address for the tools of many servers; each call of a tool is limited, charged and recorded as calls of models are. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type Next,
  type PluginInstance,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { caller } from '../common/domain/accounts.ts';
import { accountAdmin } from '../common/domain/admin/accounts.ts';
import { adminPages, clientPages } from '../common/domain/admin/admin-pages.ts';
import { consolePages } from '../common/domain/admin/alerts.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { attempts, call, spendGuard, usageReport } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { pool } from '../common/domain/ledger.ts';
import { catalog, model } from '../common/domain/models.ts';
import { memberAdmin } from '../common/domain/organizations/members.ts';
import { consoleSite } from '../common/domain/pages/console-site.ts';
import { plan, plans } from '../common/domain/plans.ts';
import { multipliers } from '../common/domain/price-ratio.ts';
import { localUpstreams, providers, translations } from '../common/domain/upstreams.ts';
import { namedServer, ownSearch } from '../common/wire/hosted-tools.ts';
import { type McpConfig, mcpSchema } from './config.ts';
import { Connections } from './connect/connections.ts';
import { endConnections } from './connect/ends.ts';
import { serverFaults } from './faults.ts';
import { Generation, loaded } from './generation.ts';
import { ownEndpoint } from './own/endpoint.ts';
import { clientPage, operatorPage } from './pages/pages.ts';
import { errorsOf, protectedResources } from './protected.ts';
import { asked, openRequest } from './request.ts';
import { Running } from './running.ts';

export default definePlugin<McpConfig>({
  name: 'mcp',
  config: mcpSchema,
  services: {
    optional: [
      accountAdmin,
      memberAdmin,
      consolePages,
      database,
      localUpstreams,
      ledgerQueries,
      pool,
      catalog,
      plans,
      multipliers,
      consoleSite,
      ownSearch,
      providers,
      translations,
    ],
  },
  mayExtend: [adminPages, clientPages],
  requires: [call, caller, asked],
  optional: [plan, model, spendGuard],
  sets: [attempts, usageReport, upstreamRequest],
  async setup(host, config) {
    const faults = host.mode === 'command' ? [] : await serverFaults(config, host);
    await host.find(database)?.migrate('mcp', new URL('./migrations/', import.meta.url));
    const connections: Connections = new Connections(host, () => servers);
    let servers = new Generation(host, config, connections.opened);
    host.extend(
      adminPages,
      operatorPage(host, () => servers),
    );
    host.extend(
      clientPages,
      clientPage(host, () => servers, connections),
    );
    endConnections(host, () => servers, connections);
    const running = new Running();
    const endpoints = ['/mcp', '/mcp/:bundle'].map((path) => endpointOf(path, () => servers, errorsOf(host)));
    const own = new Set(endpoints);
    const instance: PluginInstance<McpConfig> = {
      endpoints: [...endpoints, ownEndpoint(host, running, () => servers.config), ...protectedResources(host)],
      addresses: { pathPrefixes: ['/mcp'] },
      applies: (endpoint) => own.has(endpoint),
      handle: (exchange, next) => answer(exchange, running, host, next),
      reload: {
        // Requests that run keep the servers that they began with; a change elsewhere keeps the connections.
        prepare: async (changed) => {
          const [fault] = await serverFaults(changed, host);
          if (fault !== undefined) throw new Error(fault.message);
          return () => {
            if (isDeepStrictEqual(changed, servers.config)) return;
            servers.retire();
            servers = new Generation(host, changed, connections.opened);
          };
        },
      },
      checks: { problems: () => faults },
      commandLine: { secrets: () => connections.rotated() },
      lifecycle: { stop: () => servers.close() },
    };
    return instance;
  },
});

function endpointOf(path: string, servers: () => Generation, renderError: Endpoint['renderError']): Endpoint {
  return {
    method: 'POST',
    path,
    operation: 'tool-call',
    body: 'whole',
    setsOnOpen: [call, model, asked],
    optional: [caller, plan, namedServer],
    describes: [
      {
        summary: path === '/mcp' ? 'Lists and calls tools, by MCP.' : 'Lists and calls the tools of a bundle, by MCP.',
        ...(path === '/mcp' ? {} : { path: '/mcp/{bundle}' }),
        body: { types: ['application/json'], required: ['jsonrpc', 'method'] },
        answers: ['application/json', 'text/event-stream'],
      },
    ],
    open: async (exchange) => {
      const named = exchange.find(namedServer);
      const used = named === undefined ? servers().use(exchange) : servers().useNamed(exchange, named);
      return openRequest(exchange, await used);
    },
    ...(renderError && { renderError }),
    keepsErrorForm: true,
  };
}

async function answer(exchange: Exchange, running: Running, host: Host, next: Next): Promise<Answer> {
  const request = exchange.get(asked);
  const { message, servers } = request;
  if (message['method'] === 'notifications/cancelled') running.cancel(exchange, message);
  const signal = running.enter(exchange, message, servers.config.per_account);
  const { callTool } = await loaded();
  const given = await callTool(exchange, request, signal, host.clock, next);
  // Names the client's requests, so that it can cancel them: any process takes it, and none keeps it.
  if (message['method'] === 'initialize' && given.status === 200) given.headers['mcp-session-id'] = randomUUID();
  return given;
}
