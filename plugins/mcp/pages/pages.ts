/** The pages of tools in the console: servers, health and what tools have cost for operators; tools, prices and settings of programs for clients. */
import type { Host } from '../../../core/contract/contract.ts';
import { z } from '../../../core/contract/schema.ts';
import {
  type AdminPage,
  adminRoute,
  type ClientPage,
  type ClientPageRequest,
  type ClientPageRoute,
  clientPageRoute,
} from '../../common/domain/admin/admin-pages.ts';
import { ledgerQueries } from '../../common/domain/admin/ledger.ts';
import { formatUsd } from '../../common/domain/money.ts';
import { ownSearch, type SearchHealth, toolRuns } from '../../common/wire/hosted-tools.ts';
import type { Connections, Person } from '../connect/connections.ts';
import type { Generation } from '../generation.ts';
import type { ListedServer } from '../servers.ts';

const dayMs = 86_400_000;
const mostTools = 500;

const tool = z.object({ name: z.string(), description: z.string(), price: z.string() });
const seen = { calls: z.number(), failed: z.number(), lastFailure: z.string().nullable() };
const server = z.object({ name: z.string(), reached: z.boolean(), tools: z.array(tool), ...seen });
const engine = z.object({ name: z.string(), ...seen });
const spent = z.object({ tool: z.string(), calls: z.number(), cost: z.string() });

export function operatorPage(host: Host, servers: () => Generation): AdminPage {
  return {
    name: 'tools',
    title: { en: 'Tools', de: 'Werkzeuge', ja: 'ツール', zh: '工具' },
    intro: {
      en: 'The MCP servers of this gateway, what their tools cost, and how often they were called.',
      de: 'Die MCP-Server dieses Gateways, was ihre Werkzeuge kosten und wie oft sie aufgerufen wurden.',
      ja: 'このゲートウェイの MCP サーバー、そのツールの料金と呼び出し回数。',
      zh: '此网关的 MCP 服务器、其工具的价格以及调用次数。',
    },
    group: 'traffic',
    access: 'read',
    module: new URL('./operator.js', import.meta.url),
    routes: [
      adminRoute({
        method: 'GET',
        path: '',
        summary: 'The servers of tools and the search engine as this process sees them, and what tools have cost',
        access: 'read',
        query: z.object({ days: z.coerce.number().int().min(1).max(365).default(30) }),
        answer: z.object({ servers: z.array(server), search: engine.nullable(), spent: z.array(spent) }),
        handle: async ({ query }) => {
          const listed = await servers().listed();
          const search = host.find(ownSearch)?.health();
          return {
            servers: listed.map(shownServer),
            search: search === undefined ? null : { name: search.name, ...shownHealth(search) },
            spent: await spentOn(host, listed, query.days),
          };
        },
      }),
    ],
  };
}

const personOf = ({ accountId, actor }: ClientPageRequest): Person => ({ accountId, person: actor.id });

function connectionRoutes(connections: Connections): ClientPageRoute[] {
  return [
    clientPageRoute({
      method: 'GET',
      path: '/connections',
      summary: 'The servers that people connect with their own account there, and whether this one has',
      answer: z.object({
        connections: z.array(
          z.object({
            server: z.string(),
            per: z.enum(['person', 'account']),
            state: z.enum(['connected', 'ended', 'none']),
            since: z.string().nullable(),
          }),
        ),
      }),
      handle: async (request) => ({ connections: await connections.list(personOf(request)) }),
    }),
    clientPageRoute({
      method: 'POST',
      path: '/connections/:server',
      summary: 'Begins to connect a server: the browser goes to `location`, and comes back to the page of tools',
      body: z.strictObject({ origin: z.string().regex(/^https?:\/\/[^/?#@\s]{1,255}$/) }),
      answer: z.object({ location: z.string() }),
      handle: async (request) => ({
        location: await connections.begin(personOf(request), request.params['server']!, request.body.origin),
      }),
    }),
    clientPageRoute({
      method: 'POST',
      path: '/answers',
      summary: 'Connects a server with what the browser has brought back from it',
      body: z.strictObject({
        state: z.string().min(1).max(200),
        code: z.string().min(1).max(4_096).optional(),
        iss: z.string().max(2_048).optional(),
      }),
      answer: z.object({ server: z.string() }),
      subject: () => 'connection',
      handle: async (request) => ({ server: await connections.finish(personOf(request), request.body) }),
    }),
    clientPageRoute({
      method: 'DELETE',
      path: '/connections/:server',
      summary: 'Takes a connection away, and its tokens back from the server where that has a way',
      handle: async (request) => connections.remove(personOf(request), request.params['server']!),
    }),
  ];
}

export function clientPage(host: Pick<Host, 'find'>, servers: () => Generation, connections: Connections): ClientPage {
  return {
    name: 'tools',
    title: { en: 'Tools', de: 'Werkzeuge', ja: 'ツール', zh: '工具' },
    intro: {
      en: 'Tools that your programs and models can call with your key, and how to set them up.',
      de: 'Werkzeuge, die Ihre Programme und Modelle mit Ihrem Schlüssel aufrufen können, und wie man sie einrichtet.',
      ja: 'お使いのプログラムとモデルがキーで呼び出せるツールと、その設定方法。',
      zh: '您的程序和模型可用您的密钥调用的工具，以及设置方法。',
    },
    module: new URL('./client.js', import.meta.url),
    routes: [
      clientPageRoute({
        method: 'GET',
        path: '',
        summary:
          'The tools of the gateway with their prices before the ratios of plan and account, its servers and bundles, and whether models can use them',
        answer: z.object({
          ...{ tools: z.array(tool), servers: z.array(z.string()), bundles: z.array(z.string()), runs: z.boolean() },
        }),
        handle: async () => {
          const listed = await servers().listed();
          return {
            tools: listed.flatMap((one) => shownServer(one).tools),
            servers: listed.map(({ name }) => name),
            bundles: Object.keys(servers().config.bundles),
            runs: host.find(toolRuns) === true,
          };
        },
      }),
      ...connectionRoutes(connections),
    ],
  };
}

const shownHealth = ({ calls, failed, lastFailureAt }: Omit<SearchHealth, 'name'>) => ({
  ...{ calls, failed },
  lastFailure: lastFailureAt === undefined ? null : new Date(lastFailureAt).toISOString(),
});

function shownServer({ name, tools, health }: ListedServer) {
  return {
    ...{ name, reached: tools !== undefined },
    ...shownHealth(health),
    tools: (tools ?? []).slice(0, mostTools).map(({ shown, description, price }) => ({
      ...{ name: shown, description: description.slice(0, 500), price },
    })),
  };
}

async function spentOn(host: Host, listed: readonly ListedServer[], days: number) {
  const until = host.clock.now();
  const groups = await Promise.all(
    listed.map(({ name: provider }) =>
      host.find(ledgerQueries)?.spend({ provider, from: until - days * dayMs, until }, 'model', mostTools),
    ),
  );
  return groups.flatMap((group = []) =>
    group.flatMap(({ group: name, requests, cost }) =>
      name.includes('__') ? [{ tool: name, calls: requests, cost: formatUsd(cost) }] : [],
    ),
  );
}
