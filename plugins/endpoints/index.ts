/** Endpoints beside chat and images: embeddings and others of a table, relayed or converted, metered and charged like a chat call. */
import { definePlugin, type Endpoint, type PluginInstance, upstreamRequest } from '../../core/contract/contract.ts';
import { count, z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { call, dropped, usageReport } from '../common/domain/calls.ts';
import { model } from '../common/domain/models.ts';
import { target } from '../common/domain/upstreams.ts';
import { makeCall } from './call.ts';
import { type EndpointDescription, type Limits, openedRequest, operations } from './description.ts';
import { endpointTable } from './table.ts';

const positive = (most: number) => count().refine((value) => value >= 1 && value <= most, `must be from 1 to ${most}`);

const configSchema = z.strictObject({
  expose: z
    .array(z.enum(operations))
    .default([...operations])
    .describe('Operations whose endpoints this gateway offers.'),
  inputs: positive(100_000).prefault(2_048).describe('Inputs of one request for embeddings or moderations at most.'),
  documents: positive(100_000).prefault(1_000).describe('Documents of one request for a rerank at most.'),
  default_models: z
    .partialRecord(z.enum(operations), z.string().min(1).max(200))
    .prefault({})
    .describe('Models, by operation, of requests that may leave theirs out: { moderations: my-moderation }.'),
});

type Config = z.output<typeof configSchema>;

export default definePlugin<Config>({
  name: 'endpoints',
  config: configSchema,
  requires: [call, openedRequest, target],
  optional: [caller, model],
  sets: [upstreamRequest, usageReport, dropped],
  setup(host, config) {
    let limits = limitsOf(config);
    const offered = endpointTable.filter(({ operation }) => config.expose.includes(operation));
    const own = new Set(offered.map((description) => endpointOf(description, () => limits)));
    const instance: PluginInstance<Config> = {
      endpoints: [...own],
      pathPrefixes: ['/v1', '/v1beta', '/v1alpha'],
      applies: (endpoint) => own.has(endpoint),
      handle: (exchange, next) =>
        makeCall(exchange, exchange.get(openedRequest), exchange.get(target), host.clock, next),
      reloads: ['inputs', 'documents', 'default_models'],
      prepare: (changed) => () => {
        limits = limitsOf(changed);
      },
    };
    return instance;
  },
});

function limitsOf({ inputs, documents, default_models: defaultModels }: Config): Limits {
  return { inputs, documents, defaultModels };
}

function endpointOf(description: EndpointDescription, limits: () => Limits): Endpoint {
  const { path, operation, kind, request, renderError } = description;
  return {
    method: 'POST',
    path,
    operation,
    modelKind: kind,
    charges: true,
    body: request === 'json' ? 'json' : 'whole',
    setsOnOpen: [call, openedRequest],
    open(exchange) {
      const opened = description.open(exchange, limits());
      exchange.set(call, opened.call);
      exchange.set(openedRequest, opened);
    },
    renderError,
  };
}
