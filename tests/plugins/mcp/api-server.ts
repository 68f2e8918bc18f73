/** An HTTP API with an OpenAPI document: keeps what it is asked, and answers by the path. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface ApiServer {
  readonly origin: string;
  readonly seen: Seen[];
  document: object;
  stop(): Promise<void>;
}

const parameter = (name: string, place: string, schema: object, more: object = {}) => ({
  ...{ name, in: place, schema, ...more },
});
const string = { type: 'string' };

export const contacts = {
  openapi: '3.0.3',
  info: { title: 'Contacts', version: '1' },
  servers: [{ url: 'https://elsewhere.example/v9' }],
  paths: {
    '/contacts/{id}': {
      parameters: [{ $ref: '#/components/parameters/id' }],
      get: {
        operationId: 'getContact',
        summary: 'Gets a contact.',
        parameters: [
          parameter('fields', 'query', { type: 'array', items: string }),
          parameter('tags', 'query', { type: 'array', items: string }, { explode: false }),
          parameter('filter', 'query', { type: 'object' }, { style: 'deepObject' }),
          parameter('x-trace', 'header', string),
          parameter('x-key', 'header', string, { required: true }),
          parameter('authorization', 'header', string, { required: true }),
          parameter('body', 'query', string),
        ],
      },
      put: {
        operationId: 'replaceContact',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Contact' } } },
        },
      },
      delete: { operationId: 'deleteContact' },
    },
    '/search': {
      post: {
        requestBody: {
          content: { 'application/x-www-form-urlencoded': { schema: { type: 'object', properties: { q: string } } } },
        },
      },
    },
    '/slow': { get: { operationId: 'slow' } },
    '/big': { get: { operationId: 'big' } },
    '/picture': { get: { operationId: 'picture' } },
    '/gone': { get: { operationId: 'gone' } },
    '/lead': { get: { operationId: 'lead' } },
    '/upload': {
      post: {
        operationId: 'upload',
        requestBody: {
          required: true,
          content: {
            'multipart/form-data': {
              schema: { $ref: '#/components/schemas/Upload' },
              encoding: { file: { contentType: 'text/csv' } },
            },
          },
        },
      },
    },
  },
  components: {
    parameters: { id: parameter('id', 'path', string, { required: true }) },
    schemas: {
      Upload: {
        type: 'object',
        required: ['file'],
        properties: {
          file: { type: 'string', format: 'binary' },
          pages: { type: 'array', items: { type: 'string', format: 'binary' } },
          title: string,
          contact: { $ref: '#/components/schemas/Contact' },
        },
      },
      Contact: {
        type: 'object',
        required: ['id', 'name'],
        properties: {
          id: { type: 'integer', readOnly: true },
          name: { type: 'string', example: 'Ada' },
          age: { type: 'integer', nullable: true, minimum: 0, exclusiveMinimum: true },
          friends: { type: 'array', items: { $ref: '#/components/schemas/Contact' } },
        },
      },
    },
  },
};

export async function startApi(): Promise<ApiServer> {
  const api: Pick<ApiServer, 'seen' | 'document'> = { seen: [], document: contacts };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { pathname } = new URL(request.url!, 'http://api');
    if (pathname === '/openapi.json') return void response.end(JSON.stringify(api.document));
    const body = Buffer.concat(chunks).toString();
    api.seen.push({ method: request.method!, url: request.url!, headers: request.headers, body });
    const send = (status: number, type: string, bytes: string | Buffer, more: Record<string, string> = {}) =>
      void response.writeHead(status, { 'content-type': type, ...more }).end(bytes);
    if (pathname.endsWith('/slow')) return;
    if (pathname.endsWith('/big')) return send(200, 'text/plain', 'x'.repeat(2_000_000));
    if (pathname.endsWith('/picture')) return send(200, 'image/png', Buffer.from([1, 2, 3]));
    if (pathname.endsWith('/gone')) return send(404, 'text/plain', 'none at https://secret.example/x');
    if (pathname.endsWith('/lead')) return send(302, 'text/plain', '', { location: 'http://127.0.0.2:9/inside' });
    send(200, 'application/json; charset=utf-8', JSON.stringify({ asked: pathname }));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return Object.assign(api, {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}
