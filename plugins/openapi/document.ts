/** Makes the OpenAPI document of a gateway from its endpoints. Pure. */
import type { Endpoint } from '../../core/contract/contract.ts';
import type { PublicOperation } from '../../core/contract/public-operation.ts';

export interface DocumentOptions {
  readonly gateway: string;
  readonly version: string;
  /** Where keys are carried. */
  readonly carriers: readonly string[];
  needsKey(endpoint: Endpoint): boolean;
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
      schemas: { Error: errorSchema(options.errorMembers) },
      responses: {
        Error: {
          description: 'An error in the form of the protocol; its message says what to change.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
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
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => parameter(name!, 'path'));
  const inQuery = Object.entries(query).map(([name, sentence]) => parameter(name, 'query', sentence));
  const parameters = [...inPath, ...inQuery];
  return {
    operationId: idOf(endpoint.method, path),
    summary,
    tags: [endpoint.operation],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: requestOf(body) }),
    responses: {
      '200': { description: 'The answer.', content: Object.fromEntries(answers.map((type) => [type, answerOf(type)])) },
      default: { $ref: '#/components/responses/Error' },
    },
    security: options.needsKey(endpoint) ? options.carriers.map((carrier) => ({ [schemeName(carrier)]: [] })) : [],
  };
}

function parameter(name: string, place: 'path' | 'query', description?: string): Json {
  const described = description === undefined ? {} : { description };
  return { name, in: place, ...(place === 'path' ? { required: true } : {}), schema: { type: 'string' }, ...described };
}

function requestOf({ types, required = [] }: NonNullable<PublicOperation['body']>): Json {
  const properties = required.includes('model') ? { properties: { model: { type: 'string' } } } : {};
  const schema = { type: 'object', ...(required.length === 0 ? {} : { required }), ...properties };
  const binary = { type: 'string', format: 'binary' };
  const schemaOf = (type: string) => (type === 'application/octet-stream' ? binary : schema);
  return { required: true, content: Object.fromEntries(types.map((type) => [type, { schema: schemaOf(type) }])) };
}

function answerOf(type: string): Json {
  if (type === 'application/json') return { schema: { type: 'object' } };
  return { schema: type.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' } };
}

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
