/** Makes the OpenAPI document of a gateway from its endpoints. Pure. */
import type { Endpoint } from '../../core/contract/contract.ts';
import type { PublicOperation } from '../../core/contract/public-operation.ts';
import type { ModelKind } from '../common/domain/models.ts';
import { type Example, examples, forms } from '../common/kit/pages/call-examples.ts';
import { chatRequest } from './chat-schema.ts';

export interface DocumentOptions {
  readonly gateway: string;
  readonly version: string;
  /** Where keys are carried. */
  readonly carriers: readonly string[];
  needsKey(endpoint: Endpoint): boolean;
  /** A model of this kind that the gateway sells, for a request with or without an image. */
  modelOf(kind: ModelKind, hasImage: boolean): string | undefined;
  /** Members of the gateway's own error bodies; undefined: each protocol has its own. */
  readonly errorMembers: readonly string[] | undefined;
}

type Json = Record<string, unknown>;

export function documentOf(endpoints: readonly Endpoint[], options: DocumentOptions): Json {
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints)
    for (const described of endpoint.describes ?? []) {
      const path = described.path ?? templateOf(endpoint.path);
      paths[path] = {
        ...paths[path],
        [endpoint.method.toLowerCase()]: operationOf(endpoint, described, path, options),
      };
    }
  const schemes = options.carriers.map((carrier) => [schemeName(carrier), schemeOf(carrier)] as const);
  return {
    openapi: '3.1.0',
    info: {
      title: `Model gateway: ${options.gateway}`,
      version: options.version,
      description:
        'The endpoints that this gateway offers. Bodies are those of the protocols that official clients speak.',
    },
    servers: [{ url: '/' }],
    paths: Object.fromEntries(Object.entries(paths).sort(([left], [right]) => (left < right ? -1 : 1))),
    components: {
      securitySchemes: Object.fromEntries(schemes),
      schemas: { Error: errorSchema(options.errorMembers), ChatRequest: chatRequest },
      responses: {
        Error: errorAnswer({ $ref: '#/components/schemas/Error' }),
      },
    },
  };
}

/** `:id` and `*` of a pattern as named parameters; `::` is a colon. */
function templateOf(pattern: string): string {
  return pattern
    .replace(/(?<!:):(\w+)/g, '{$1}')
    .replace('*', '{path}')
    .replaceAll('::', ':');
}

function operationOf(endpoint: Endpoint, described: PublicOperation, path: string, options: DocumentOptions): Json {
  const { summary, body, query = {}, answers = ['application/json'] } = described;
  const key = path.includes('{model}') ? path.slice(path.indexOf('}') + 1) : path;
  const example = exampleOf(examples[key], path, options);
  const form = exampleOf(forms[key], path, options);
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    const shown = name === 'model' && example?.model !== undefined ? { example: example.model } : {};
    return { ...parameter(name!, 'path'), ...shown };
  });
  const inQuery = Object.entries(query).map(([name, sentence]) => parameter(name, 'query', sentence));
  const inHeaders = Object.entries(examples[key]?.headers ?? {}).map(([name, { says, example: shown }]) => ({
    ...parameter(name, 'header', says),
    example: shown,
  }));
  const parameters = [...inPath, ...inQuery, ...inHeaders];
  return {
    operationId: idOf(endpoint.method, path),
    summary,
    tags: [endpoint.operation],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: requestOf(path, body, example, form) }),
    responses: {
      '200': { description: 'The answer.', content: Object.fromEntries(answers.map((type) => [type, answerOf(type)])) },
      default:
        endpoint.keepsErrorForm === true ? errorAnswer({ type: 'object' }) : { $ref: '#/components/responses/Error' },
    },
    security: options.needsKey(endpoint) ? options.carriers.map((carrier) => ({ [schemeName(carrier)]: [] })) : [],
  };
}

function parameter(name: string, place: 'path' | 'query' | 'header', description?: string): Json {
  const described = description === undefined ? {} : { description };
  return { name, in: place, ...(place === 'path' ? { required: true } : {}), schema: { type: 'string' }, ...described };
}

interface Shown {
  readonly model: string | undefined;
  readonly body: Json;
  readonly files: readonly string[];
}

/** With a model that this gateway sells, so that it can be sent as it is; undefined: there is none, or no example. */
function exampleOf(example: Example | undefined, path: string, options: DocumentOptions): Shown | undefined {
  if (example === undefined) return undefined;
  const { kind, files = [], withImage } = example;
  const plain = kind === undefined ? undefined : options.modelOf(kind, files.length > 0);
  const needsImage = kind !== undefined && plain === undefined && withImage !== undefined;
  const model = needsImage ? options.modelOf(kind, true) : plain;
  if (kind !== undefined && model === undefined) return undefined;
  const text = JSON.stringify(needsImage ? { ...example.body, ...withImage } : example.body);
  const body = JSON.parse(text.replaceAll('MODEL', model ?? '')) as Json;
  const isWithin = kind === undefined || text.includes('MODEL') || path.includes('{model}');
  return { model, body: isWithin ? body : { model, ...body }, files };
}

type Body = NonNullable<PublicOperation['body']>;

const binary = { type: 'string', format: 'binary' };

function requestOf(path: string, { types, required = [] }: Body, json?: Shown, form?: Shown): Json {
  const shownAs: Readonly<Record<string, Shown | undefined>> = {
    'application/json': json,
    'multipart/form-data': form,
  };
  const contentOf = (type: string): Json => {
    if (type === 'application/octet-stream') return { schema: binary };
    const shown = shownAs[type];
    const example = shown === undefined ? {} : { example: shown.body };
    if (path === '/v1/chat/completions') return { schema: { $ref: '#/components/schemas/ChatRequest' }, ...example };
    return { schema: plainSchema(required, shown?.files ?? []), ...example };
  };
  return { required: true, content: Object.fromEntries(types.map((type) => [type, contentOf(type)])) };
}

function plainSchema(required: readonly string[], files: readonly string[]): Json {
  const model = required.includes('model') ? { model: { type: 'string' } } : {};
  const properties = { ...model, ...Object.fromEntries(files.map((name) => [name, binary])) };
  return {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
  };
}

function answerOf(type: string): Json {
  if (type === 'application/json') return { schema: { type: 'object' } };
  return { schema: type.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' } };
}

const errorAnswer = (schema: Json): Json => ({
  description: 'An error in the form of the protocol; its message says what to change.',
  content: { 'application/json': { schema } },
});

function errorSchema(members: readonly string[] | undefined): Json {
  if (members === undefined) return { type: 'object' };
  const properties = Object.fromEntries(members.map((name) => [name, { type: 'string' }]));
  return { type: 'object', required: members, properties };
}

function idOf(method: string, path: string): string {
  return [method.toLowerCase(), ...path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')].join('_');
}

const schemeName = (carrier: string) => `key in ${carrier}`.replaceAll(' ', '_');

function schemeOf(carrier: string): Json {
  if (carrier === 'bearer') return { type: 'http', scheme: 'bearer' };
  return carrier === 'query'
    ? { type: 'apiKey', in: 'query', name: 'key' }
    : { type: 'apiKey', in: 'header', name: carrier };
}
