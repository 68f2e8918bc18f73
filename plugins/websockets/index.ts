/** WebSocket for clients: responses in turns, and relayed sessions. Charged parts pass the same chain as HTTP requests. */
import {
  definePlugin,
  type Endpoint,
  type Host,
  type PluginInstance,
  type SocketEndpoint,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import { keyring } from '../common/domain/accounts.ts';
import { socketStatistics } from '../common/domain/admin/sockets.ts';
import { call, spendGuard, usageReport } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { catalog } from '../common/domain/models.ts';
import { sessionProtocols, target } from '../common/domain/upstreams.ts';
import { sessionGuard } from '../common/guardrails/sessions.ts';
import { envelopeAnswer, googleErrorAnswer } from '../common/kit/error-envelope.ts';
import { promptRules } from '../common/wire/prompt-rules.ts';
import { acceptLive, acceptRealtime } from './accept.ts';
import { configSchema, type WebSocketsConfig } from './config.ts';
import { type Arrival, Connections } from './connections.ts';
import { liveProtocols } from './live/live.ts';
import { tokenEndpoints } from './live/token-endpoints.ts';
import { LiveTokens } from './live/tokens.ts';
import { callsEndpoint, stepEndpoint } from './realtime/endpoints.ts';
import { realtimeProtocol } from './realtime/realtime.ts';
import { secretEndpoints } from './realtime/secret-endpoints.ts';
import { RealtimeSecrets } from './realtime/secrets.ts';
import { relayAttempt } from './relay/attempt.ts';
import type { RelayTools } from './relay/charges.ts';
import type { RelayProtocol } from './relay/dialect.ts';
import { ResponsesSession } from './responses/session.ts';
import { overSocket, takesTurns } from './upstream/over-socket.ts';
import { UpgradeRefusals, UpstreamTurns } from './upstream/upstream-turns.ts';

const sweepMs = 1_000;
const expiryMs = 10 * 60_000;

/** The endpoint of the steps of each relayed protocol. */
const steps: ReadonlyMap<Endpoint, RelayProtocol> = new Map([
  [
    stepEndpoint(realtimeProtocol, {
      operation: 'realtime',
      renderError: envelopeAnswer,
      describes: [
        {
          summary: 'Opens a realtime session; the request upgrades to a WebSocket.',
          query: { model: 'The model of the session.' },
        },
      ],
    }),
    realtimeProtocol,
  ],
  ...liveProtocols.map(
    (protocol) =>
      [
        stepEndpoint(protocol, {
          operation: 'realtime',
          renderError: googleErrorAnswer,
          describes: [{ summary: 'Opens a live session; the request upgrades to a WebSocket.' }],
        }),
        protocol,
      ] as const,
  ),
]);

export default definePlugin<WebSocketsConfig>({
  name: 'websockets',
  config: configSchema,
  services: {
    optional: [keyring, catalog, database, errorShape, promptRules, sessionGuard],
    provides: [socketStatistics, sessionProtocols],
  },
  requires: [call, target],
  optional: [spendGuard, upstreamRequest],
  sets: [upstreamRequest, usageReport],
  async setup(host, config) {
    const store = host.find(database);
    await store?.migrate('websockets', new URL('./migrations/', import.meta.url));
    const secrets = store === undefined ? undefined : new RealtimeSecrets(store, host.clock);
    const tokens = store === undefined ? undefined : new LiveTokens(store, host.clock);
    const connections = new Connections(host, config);
    const tools: RelayTools = { host, connections };
    const protocols = [...steps.values()];
    host.provide(sessionProtocols, {
      paths: () => new Map(protocols.map(({ name, base }) => [name, base])),
      // The first of several versions of one protocol is named.
      endpoints: () => new Map(protocols.toReversed().map(({ name, endpoint }) => [name, `${endpoint} (WebSocket)`])),
    });
    host.provide(socketStatistics, { counts: () => connections.counts() });
    host.every(sweepMs, 'look after WebSockets', () => connections.sweep());

    if (secrets !== undefined) host.every(expiryMs, 'delete expired client secrets', () => secrets.deleteExpired());
    if (tokens !== undefined) host.every(expiryMs, 'delete expired tokens', () => tokens.deleteExpired());

    const instance: PluginInstance<WebSocketsConfig> = {
      addresses: { sockets: socketsOf(tools, host, { secrets, tokens }) },
      endpoints: [
        ...[...steps.keys(), callsEndpoint],
        ...(secrets === undefined ? [] : secretEndpoints(host, secrets)),
        ...(tokens === undefined ? [] : tokenEndpoints(host, tokens)),
      ],
      applies: (endpoint) => steps.has(endpoint) || takesTurns(endpoint),
      handle(exchange, next) {
        const protocol = steps.get(exchange.endpoint);
        return protocol === undefined
          ? overSocket(exchange, next, host.clock)
          : relayAttempt(exchange, protocol, host.clock, next);
      },
      reload: { prepare: (changed) => () => connections.applyConfig(changed) },
    };
    return instance;
  },
});

interface Keys {
  readonly secrets: RealtimeSecrets | undefined;
  readonly tokens: LiveTokens | undefined;
}

function socketsOf(tools: RelayTools, host: Host, { secrets, tokens }: Keys): SocketEndpoint[] {
  const { connections } = tools;
  const refusals = new UpgradeRefusals(host.clock);
  const turnsTools = { clock: host.clock, refusals, maxBytes: () => connections.config.message };
  const acceptResponses = async (arrival: Arrival): Promise<void> => {
    const caller = await connections.authenticate(arrival.upgrade.request);
    const place = connections.reserve(caller, arrival.upgrade.request.remoteAddress);
    connections.accept(
      arrival,
      'responses',
      place,
      (connection) => new ResponsesSession(connection, connections, host, new UpstreamTurns(turnsTools), caller),
    );
  };
  const socketAt = (path: string, accept: (arrival: Arrival) => Promise<void>): SocketEndpoint => ({
    path,
    accept: (request, socket, head, upgrade) =>
      void accept({ request, socket, head, upgrade }).catch((error: unknown) => upgrade.refuse(error)),
    drain: () => connections.drain(),
  });
  return [
    socketAt('/v1/responses', acceptResponses),
    socketAt('/v1/realtime', (arrival) => acceptRealtime(tools, secrets, arrival)),
    // Clients with a token call the second address.
    ...liveProtocols.flatMap((protocol) =>
      [protocol.endpoint, `${protocol.endpoint}Constrained`].map((path) =>
        socketAt(path, (arrival) => acceptLive(tools, tokens, protocol, arrival)),
      ),
    ),
  ];
}
