/** A resource of Azure with two deployments, and the authority of its tokens: both check what they are sent. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Arrived, Play } from '../../matrix/scenario.ts';
import { chatVendor } from '../../matrix/vendors/chat.ts';
import { responsesVendor } from '../../matrix/vendors/responses.ts';

export const resourceKey = 'key-of-the-resource';
export const clientSecret = 'secret-of-the-application';
export const federatedToken = 'federated.token.of-the-workload';
const tenant = 'tenant-1';
const client = 'client-1';
const scope = 'https://cognitiveservices.azure.com/.default';

export interface AzureStandIn {
  readonly origin: string;
  readonly authority: { readonly tenant: string; readonly client_id: string; readonly authority: string };
  /** What was asked of the model, in the order of arrival. */
  readonly arrived: Arrived[];
  /** How each request was authorized. */
  readonly authorizedBy: string[];
  readonly paths: string[];
  /** What was wrong with requests. */
  readonly problems: unknown[];
  play: Play;
  /** Instead of an answer. */
  fault: { status: number; headers?: Record<string, string>; body: object } | undefined;
  tokens: { issued: number; refuses: boolean; livesSeconds: number; revoked: boolean };
  close(): void;
}

export async function startAzure(play: Play): Promise<AzureStandIn> {
  const valid = new Set<string>();
  const server: Server = createServer(async (request, response) => {
    const body = await buffer(request);
    let answer: { status: number; headers?: Record<string, string>; body: string };
    try {
      answer = answerOf(request, body);
    } catch (error) {
      standIn.problems.push(error);
      answer = { status: 400, body: JSON.stringify({ error: { code: 'BadRequest', message: String(error) } }) };
    }
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers }).end(answer.body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const standIn: AzureStandIn = {
    origin,
    authority: { tenant, client_id: client, authority: `${origin}/login` },
    ...{ arrived: [], authorizedBy: [], paths: [], problems: [], play, fault: undefined },
    tokens: { issued: 0, refuses: false, livesSeconds: 3_599, revoked: false },
    close: () => void server.close(),
  };
  return standIn;

  function answerOf(request: IncomingMessage, body: Buffer) {
    const { pathname } = new URL(request.url!, origin);
    if (pathname === '/metadata/identity/oauth2/token') return machineToken(request);
    return pathname.endsWith('/token') ? token(request, body) : model(request, body);
  }

  function machineToken({ url, method, headers }: IncomingMessage) {
    assert.equal(method, 'GET');
    assert.equal(headers['metadata'], 'true');
    const { 'api-version': version, resource, ...others } = Object.fromEntries(new URL(url!, origin).searchParams);
    assert.deepEqual([version, resource], ['2018-02-01', 'https://cognitiveservices.azure.com']);
    if (standIn.tokens.refuses || (others['client_id'] ?? client) !== client)
      return {
        status: 400,
        body: JSON.stringify({ error: 'invalid_request', error_description: 'Identity not found' }),
      };
    // The metadata service writes numbers as text.
    return newToken({ expires_in: String(standIn.tokens.livesSeconds), resource });
  }

  function newToken(more: object) {
    standIn.tokens.issued += 1;
    const access = `token-of-entra.${standIn.tokens.issued}`;
    valid.add(access);
    return { status: 200, body: JSON.stringify({ token_type: 'Bearer', access_token: access, ...more }) };
  }

  function token({ url, method, headers }: IncomingMessage, body: Buffer) {
    assert.equal(method, 'POST');
    assert.equal(url, `/login/${tenant}/oauth2/v2.0/token`);
    assert.match(headers['content-type']!, /^application\/x-www-form-urlencoded/);
    const form: Record<string, string | undefined> = Object.fromEntries(new URLSearchParams(body.toString()));
    const { grant_type: grant, client_id: id, scope: wanted, ...proof } = form;
    const given = form['client_secret'];
    assert.deepEqual([grant, id, wanted], ['client_credentials', client, scope]);
    if (given === undefined)
      assert.deepEqual(proof, {
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: federatedToken,
      });
    else assert.deepEqual(Object.keys(proof), ['client_secret']);
    if (standIn.tokens.refuses || (given ?? clientSecret) !== clientSecret)
      return {
        status: 401,
        body: JSON.stringify({
          error: 'invalid_client',
          error_description: `AADSTS7000215: Invalid client secret provided: ${given}. Trace ID: 1`,
          error_codes: [7_000_215],
        }),
      };
    return newToken({ expires_in: standIn.tokens.livesSeconds });
  }

  function model({ url, method, headers }: IncomingMessage, body: Buffer) {
    standIn.paths.push(url!);
    const authorized = authorization(headers);
    if (authorized === undefined || (authorized === 'token' && standIn.tokens.revoked))
      return {
        status: 401,
        body: JSON.stringify({
          error: {
            code: '401',
            message: `Access denied due to invalid subscription key ${headers['api-key'] ?? ''} or wrong API endpoint.`,
          },
        }),
      };
    standIn.authorizedBy.push(authorized);
    assert.equal(method, 'POST');
    const { pathname, searchParams } = new URL(url!, origin);
    const classic = /^\/openai\/deployments\/([^/]+)\/chat\/completions$/.exec(pathname);
    const path = classic === null ? pathname.replace(/^\/openai/, '') : '/v1/chat/completions';
    assert.deepEqual([...searchParams], classic === null ? [] : [['api-version', '2024-10-21']]);
    const isResponses = path === '/v1/responses';
    const vendor = isResponses ? responsesVendor : chatVendor;
    const received = { url: path, headers: { authorization: 'Bearer vendor-key' }, body };
    const arrived = vendor.read(received as unknown as Parameters<typeof vendor.read>[0]);
    const deployment = classic === null ? arrived.model : decodeURIComponent(classic[1]!);
    if (deployment !== 'gpt own')
      return {
        status: 404,
        body: JSON.stringify({
          error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' },
        }),
      };
    standIn.arrived.push(arrived);
    const { fault } = standIn;
    if (fault !== undefined) return { ...fault, body: JSON.stringify(fault.body) };
    const { play } = standIn;
    if (!arrived.isStream)
      return { status: 200, body: isResponses ? vendor.whole(play, 'gpt-4o') : filteredWhole(play) };
    const stream = isResponses ? vendor.stream(play, 'gpt-4o').join('') : filteredStream(play);
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: stream };
  }

  function authorization(headers: IncomingMessage['headers']): 'key' | 'token' | undefined {
    const { 'api-key': key, authorization: bearer } = headers;
    if (key !== undefined) return bearer === undefined && key === resourceKey ? 'key' : undefined;
    return bearer?.startsWith('Bearer ') && valid.has(bearer.slice(7)) ? 'token' : undefined;
  }
}

const filterResults = {
  hate: { filtered: false, severity: 'safe' },
  violence: { filtered: false, severity: 'low' },
};
const promptResults = [{ prompt_index: 0, content_filter_results: filterResults }];

/** What the vendor's other chat interface answers, with the results of its content filter. */
export function filteredWhole(play: Play): string {
  const body = JSON.parse(chatVendor.whole(play, 'gpt-4o')) as { choices: object[] };
  const choices = body.choices.map((choice) => ({ ...choice, content_filter_results: filterResults }));
  return JSON.stringify({ ...body, choices, prompt_filter_results: promptResults });
}

export function filteredStream(play: Play): string {
  const head = { id: '', object: '', created: 0, model: '', choices: [], prompt_filter_results: promptResults };
  const frames = chatVendor.stream(play, 'gpt-4o').map((frame) => {
    if (frame.includes('[DONE]')) return frame;
    const chunk = JSON.parse(frame.slice('data: '.length)) as { choices: object[] };
    const choices = chunk.choices.map((choice) => ({ ...choice, content_filter_results: filterResults }));
    return `data: ${JSON.stringify({ ...chunk, choices })}\n\n`;
  });
  return [`data: ${JSON.stringify(head)}\n\n`, ...frames].join('');
}
