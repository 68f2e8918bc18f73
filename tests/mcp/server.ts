/** The server that the suite's scenarios expect, by the official library: tools, resources and prompts with fixed names and answers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server';

// biome-ignore lint/suspicious/noExplicitAny: parameters of many shapes
type Params = any;
type Content = readonly object[];

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const silence = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';
const text = (value: string) => ({ type: 'text', text: value });
const image = { type: 'image', data: pixel, mimeType: 'image/png' };
const embedded = (uri: string, mimeType: string, value: string) => ({
  type: 'resource',
  resource: { uri, mimeType, text: value },
});

const answers: Readonly<Record<string, (context: ServerContext) => Content | Promise<Content>>> = {
  test_simple_text: () => [text('This is a simple text response for testing.')],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: 'audio', data: silence, mimeType: 'audio/wav' }],
  test_embedded_resource: () => [
    embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ],
  test_multiple_content_types: () => [
    text('Multiple content types test:'),
    image,
    embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
  async test_tool_with_progress({ mcpReq }) {
    const { progressToken } = (mcpReq._meta ?? {}) as Params;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100])
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    return [text(String(progressToken))];
  },
  json_schema_2020_12_tool: () => [text('taken')],
};
/** Scenarios of what a server asks its client, outside of an answer: the gateway passes none of it on. */
const asking = [
  ...['test_tool_with_logging', 'test_sampling', 'test_elicitation', 'test_reconnection'],
  ...['test_elicitation_sep1034_defaults', 'test_elicitation_sep1330_enums'],
];

const plain = { type: 'object' as const, properties: {} };
const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
};
const tools = [...Object.keys(answers), 'test_error_handling', ...asking].map((name) => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: name.startsWith('json_schema') ? schema2020 : plain,
}));

const resources: Readonly<Record<string, object>> = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: pixel },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched resource content' },
};
const template = /^test:\/\/template\/([^/]+)\/data$/;

function read(uri: string): object {
  const id = template.exec(uri)?.[1];
  if (id !== undefined) return { mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) };
  if (Object.hasOwn(resources, uri)) return resources[uri]!;
  throw new ProtocolError(-32_602, 'Resource not found', { uri });
}

const required = (name: string) => ({ name, description: `The argument ${name}.`, required: true });
const prompts = [
  { name: 'test_simple_prompt', description: 'Without arguments.' },
  { name: 'test_prompt_with_arguments', description: 'With two.', arguments: [required('arg1'), required('arg2')] },
  { name: 'test_prompt_with_embedded_resource', description: 'With one.', arguments: [required('resourceUri')] },
  { name: 'test_prompt_with_image', description: 'With an image.' },
];

function said(name: string, given: Readonly<Record<string, string>>): Content {
  if (name === 'test_prompt_with_arguments')
    return [text(`Prompt with arguments: arg1='${given['arg1']}', arg2='${given['arg2']}'`)];
  if (name === 'test_prompt_with_embedded_resource')
    return [
      embedded(given['resourceUri'] ?? '', 'text/plain', 'Embedded resource content for testing.'),
      text('Please process the embedded resource above.'),
    ];
  if (name === 'test_prompt_with_image') return [image, text('Please analyze the image above.')];
  return [text('This is a simple prompt for testing.')];
}

function suiteServer(): Server {
  const server = new Server(
    { name: 'conformance', version: '1' },
    { capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} } },
  );
  server.setRequestHandler('tools/list', async () => ({ tools }) as never);
  server.setRequestHandler('tools/call', async ({ params: { name } }, context) => {
    if (Object.hasOwn(answers, name)) return { content: await answers[name]!(context) } as never;
    return { content: [text('This tool intentionally returns an error for testing')], isError: true } as never;
  });
  server.setRequestHandler('resources/list', async () => ({
    resources: Object.keys(resources).map((uri) => ({ uri, name: uri.slice('test://'.length) })),
  }));
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template' }],
  }));
  server.setRequestHandler(
    'resources/read',
    async ({ params: { uri } }) => ({ contents: [{ uri, ...read(uri) }] }) as never,
  );
  server.setRequestHandler('prompts/list', async () => ({ prompts }));
  server.setRequestHandler('prompts/get', async ({ params: { name, arguments: given = {} } }) => ({
    messages: said(name, given).map((content) => ({ role: 'user', content })) as never,
  }));
  server.setRequestHandler('completion/complete', async () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
  return server;
}

export interface Started {
  readonly origin: string;
  stop(): Promise<void>;
}

export async function listen(
  answer: (request: Request, body: string) => Response | Promise<Response>,
): Promise<Started> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const given = await answer(new Request(`http://suite${request.url}`, { method: request.method!, headers }), body);
    response.writeHead(given.status, Object.fromEntries(given.headers));
    response.end(Buffer.from(await given.arrayBuffer()));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function startSuiteServer(): Promise<Started> {
  const handler = createMcpHandler(suiteServer, { legacy: 'stateless' });
  return listen((request, body) => handler.fetch(request, body === '' ? {} : { parsedBody: JSON.parse(body) }));
}
