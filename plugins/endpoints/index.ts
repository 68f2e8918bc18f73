/** Endpoints beside chat and images: embeddings and others of a table, relayed or converted, metered and charged like a chat call. */
import { join } from 'node:path';
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type PluginInstance,
  upstreamRequest,
} from '../../core/contract/contract.ts';
import type { PublicOperation } from '../../core/contract/public-operation.ts';
import { count, size, z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { call, dropped, usageReport } from '../common/domain/calls.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { model } from '../common/domain/models.ts';
import { endpointProtocols, target } from '../common/domain/upstreams.ts';
import { speech } from './audio/speech.ts';
import { Spool, type SpoolLimits } from './audio/spool.ts';
import { transcriptionEndpoints } from './audio/transcriptions.ts';
import { type CallTools, makeCall } from './call.ts';
import { decisionEndpoints } from './decisions/endpoints.ts';
import { type EndpointDescription, type Limits, type Opened, openedRequest, operations } from './description.ts';
import { geminiEmbeddings } from './embeddings/embed-content.ts';
import { openaiEmbeddings } from './embeddings/embeddings.ts';
import { moderations } from './moderations.ts';
import { rerankEndpoints } from './rerank/endpoints.ts';
import { unrouted } from './unrouted.ts';
import { wireEndpoints, wirePaths } from './wires.ts';

/** Every endpoint of this plugin. */
const endpointTable: readonly EndpointDescription[] = [
  openaiEmbeddings,
  ...geminiEmbeddings,
  ...rerankEndpoints,
  ...decisionEndpoints,
  moderations,
  speech,
  ...transcriptionEndpoints,
];

const positive = (most: number) => count().refine((value) => value >= 1 && value <= most, `must be from 1 to ${most}`);

const configSchema = z.strictObject({
  expose: z
    .array(z.enum(operations))
    .default([...operations])
    .describe('Operations whose endpoints this gateway offers. Shorten it to what you sell.'),
  answer_model: z
    .enum(['vendor', 'asked'])
    .default('vendor')
    .describe(
      `The model's name in relayed JSON answers: "vendor" keeps the vendor's bytes, "asked" writes the name that the client has asked for. Use asked when clients compare the names.`,
    ),
  inputs: positive(100_000)
    .prefault(2_048)
    .describe(
      'Inputs of one request for embeddings or moderations at most. Raise it when clients embed many texts at once.',
    ),
  documents: positive(100_000)
    .prefault(1_000)
    .describe('Documents of one request for a rerank at most. Raise it when clients rank longer lists.'),
  questions: positive(100_000)
    .prefault(400)
    .describe('Questions of one request for decisions at most. Raise it when clients ask more at once.'),
  characters: positive(1_000_000)
    .prefault(4_096)
    .describe('Characters of one text to speak at most. Raise it for models that speak longer texts.'),
  file: size()
    .refine((bytes) => bytes >= 1, 'must be at least 1')
    .prefault('25MB')
    .describe('Largest audio file to transcribe. Raise it for vendors that take larger ones.'),
  spool: z
    .strictObject({
      memory: size()
        .prefault('1MB')
        .describe(
          'Largest form that waits in memory; larger ones lie on the disk. Raise it on machines with much memory and a slow disk.',
        ),
      forms: positive(100_000)
        .prefault(200)
        .describe(
          'Forms that are received and sent at once, in one process. Raise it when clients get 429 with the code forms.',
        ),
      account: positive(100_000)
        .prefault(20)
        .describe('Forms of one account at once. Raise it for clients that transcribe many files at a time.'),
      disk: size().prefault('4GB').describe('What forms may take on the disk together. Lower it on a small disk.'),
    })
    .prefault({})
    .describe('Forms with an audio file, from their arrival to the end of their call.'),
  default_models: z
    .partialRecord(z.enum(operations), z.string().min(1).max(200))
    .prefault({})
    .describe(
      'Models, by operation, of requests that may leave theirs out: { moderations: my-moderation }. Set it for clients that name none.',
    ),
});

type Config = z.output<typeof configSchema>;

export default definePlugin<Config>({
  name: 'endpoints',
  config: configSchema,
  services: { optional: [errorShape], provides: [endpointProtocols] },
  requires: [call, openedRequest, target],
  optional: [caller, model],
  sets: [upstreamRequest, usageReport, dropped],
  setup(host, config) {
    host.provide(endpointProtocols, {
      paths: () => wirePaths,
      endpoints: () =>
        new Map(
          wireEndpoints.flatMap(([name, operation, path]) => (config.expose.includes(operation) ? [[name, path]] : [])),
        ),
    });
    let [limits, spoolLimits, answerModel] = [limitsOf(config), spoolLimitsOf(config), config.answer_model];
    const spool = new Spool(join(host.directory, 'endpoints', 'spool'), () => spoolLimits, host.random);
    const tools: CallTools = {
      clock: host.clock,
      shape: () => host.find(errorShape)?.members,
      namesRequested: () => answerModel === 'asked',
    };
    const offered = endpointTable.filter(({ operation }) => config.expose.includes(operation));
    const own = new Set(offered.map((description) => endpointOf(description, () => limits, spool)));
    const instance: PluginInstance<Config> = {
      endpoints: [...own],
      addresses: {
        pathPrefixes: ['/v1', '/v1beta', '/v1alpha'],
        unrouted,
      },
      applies: (endpoint) => own.has(endpoint),
      handle: (exchange, next) => makeCall(exchange, exchange.get(openedRequest), exchange.get(target), tools, next),
      reload: {
        members: ['answer_model', 'inputs', 'documents', 'questions', 'characters', 'file', 'default_models', 'spool'],
        prepare: (changed) => () => {
          [limits, spoolLimits, answerModel] = [limitsOf(changed), spoolLimitsOf(changed), changed.answer_model];
        },
      },
      lifecycle: { start: () => spool.start() },
    };
    return instance;
  },
});

function limitsOf({ file: fileBytes, default_models: defaultModels, ...limits }: Config): Limits {
  const { inputs, documents, questions, characters } = limits;
  return { inputs, documents, questions, characters, fileBytes, defaultModels };
}

function spoolLimitsOf({ spool }: Config): SpoolLimits {
  const { memory: memoryBytes, forms: bodies, account: accountBodies, disk: diskBytes } = spool;
  return { memoryBytes, bodies, accountBodies, diskBytes };
}

function describe({ paths, summary, request, model, answers }: EndpointDescription): PublicOperation[] {
  const types = [request === 'json' ? 'application/json' : 'multipart/form-data'];
  const body = { types, required: model === 'body' ? ['model'] : [] };
  return paths === undefined ? [{ summary, body, answers }] : paths.map((path) => ({ summary, path, body, answers }));
}

function endpointOf(description: EndpointDescription, limits: () => Limits, spool: Spool): Endpoint {
  const { path, operation, kind, request, renderError } = description;
  return {
    method: 'POST',
    path,
    operation,
    describes: describe(description),
    modelKind: kind,
    charges: true,
    body: request === 'json' ? 'json' : 'stream',
    setsOnOpen: [call, openedRequest],
    // Forms are counted by account.
    ...(request === 'json' ? {} : { optional: [caller] }),
    open(exchange) {
      const opened = description.open(exchange, limits(), spool);
      return opened instanceof Promise ? opened.then((later) => set(exchange, later)) : set(exchange, opened);
    },
    renderError,
  };
}

function set(exchange: Exchange, opened: Opened): void {
  exchange.set(call, opened.call);
  exchange.set(openedRequest, opened);
}
