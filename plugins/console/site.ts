/** Everything under `/console`, and the gateway's root: an exchange of the gateway becomes a web request for API or sign-in, or gets a file. */

import { type Exchange, type Next, type UpstreamRequest, upstreamRequest } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { toGatewayError } from '../../core/contract/upstream-failures.ts';
import { compressed } from '../common/kit/pages/compress.ts';
import { commonHeaders, dataPolicy } from '../common/kit/pages/headers.ts';
import { originOf } from '../common/kit/pages/origin.ts';
import { createApi } from './api/index.ts';
import type { ConsoleServices } from './api/routing/router.ts';
import { samlPath } from './company/saml/parts.ts';
import type { Files } from './files.ts';
import { moduleAnswer } from './modules.ts';
import { plainAddress } from './origin.ts';
import { addressHeader, authPath } from './people/auth-names.ts';
import type { SignIn } from './people/sign-in.ts';

const apiPath = '/console/api';
const scimPath = '/console/scim/v2';
const bodyLimit = 64 * 1024;
/** Responses of providers name all groups of a person. */
const samlLimit = 320 * 1024;
const configLimit = 2 * 1024 * 1024;
/** Whatever a client says of these is not believed, or not wanted. */
const droppedHeaders = new Set(['connection', 'host', 'content-length', 'transfer-encoding', addressHeader]);

export interface SiteParts {
  readonly services: ConsoleServices;
  readonly signIn: SignIn;
  readonly files: Files;
  /** As configured; empty: as each request says. */
  readonly origin: string;
}

/** `forward` is the gateway's centre: an operator's trial of an upstream goes the way of every call. */
export type Site = (exchange: Exchange, forward: Next) => Promise<Answer>;

export function createSite({ services, signIn, files, origin: configured }: SiteParts): Site {
  // Made by the first request: plugins may add routes until all of them are set up.
  let api: ReturnType<typeof createApi> | undefined;
  return async function site(exchange, forward) {
    const { request } = exchange;
    let answer: Answer;
    try {
      const path = plainPath(request.path);
      const origin = originOf(configured, request.headers['host']);
      const elsewhere = entrance(services, request, path);
      const byProviders = elsewhere ?? (await ofProviders(exchange, services, origin, path));
      if (byProviders !== undefined) answer = byProviders;
      else if (path === authPath || path.startsWith(`${authPath}/`))
        answer = await toAnswer(await signIn(toRequest(exchange, origin, path), origin));
      else if (path === apiPath || path.startsWith(`${apiPath}/`)) {
        const web = toRequest(exchange, origin, path.slice(apiPath.length) || '/');
        const address = plainAddress(request.remoteAddress);
        api ??= createApi(services);
        const response = await api.fetch(web, { origin, address, send: sender(exchange, forward), exchange });
        answer = await compressed(await toAnswer(response), String(request.headers['accept-encoding'] ?? ''));
      } else answer = await pageOrFile(exchange, services, files, path);
    } catch (error) {
      answer = errorAnswer(error);
    }
    answer.headers = {
      'content-security-policy': dataPolicy,
      ...commonHeaders(configured.startsWith('https:')),
      ...answer.headers,
    };
    return request.method === 'HEAD' ? { ...answer, body: '' } : answer;
  };
}

/** What directories and identity providers of companies ask and send; no page of ours does. */
async function ofProviders(exchange: Exchange, services: ConsoleServices, origin: string, path: string) {
  const asked = { origin, address: plainAddress(exchange.request.remoteAddress) };
  if (path.startsWith(`${scimPath}/`)) {
    const { answerScim } = await import('./company/scim/answer.ts');
    return toAnswer(await answerScim(services, toRequest(exchange, origin, path), asked));
  }
  if (!path.startsWith(`${samlPath}/`)) return undefined;
  const { answerSaml } = await import('./company/saml/answer.ts');
  return toAnswer(await answerSaml(services, toRequest(exchange, origin, path), asked));
}

function sender(exchange: Exchange, forward: Next): (request: UpstreamRequest) => Promise<Answer> {
  return (request) => {
    exchange.set(upstreamRequest, request);
    return forward();
  };
}

/** Refused before it is read: no page of ours sends more. */
export function refuseLarge(exchange: Exchange): Answer | undefined {
  const { headers, path } = exchange.request;
  const limit = limitOf(path);
  const declared = Number(headers['content-length'] ?? 0);
  if (headers['transfer-encoding'] === undefined && declared <= limit) return undefined;
  return errorAnswer(new GatewayError('too_large', `A body has at most ${limit} bytes here, and says how many.`));
}

function limitOf(path: string): number {
  if (path.startsWith(`${apiPath}/admin/config/`)) return configLimit;
  return path.startsWith(`${samlPath}/`) ? samlLimit : bodyLimit;
}

function errorAnswer(thrown: unknown): Answer {
  const { status, kind, message, code, field } = toGatewayError(thrown);
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify({ error: { code: code ?? kind, message, ...(field === undefined ? {} : { field }) } }),
  };
}

/** Dot segments, doubled slashes and their encoded forms would mean one thing here and another behind. */
function plainPath(path: string): string {
  if (/\\|\/\/|%2e|%2f|%5c|%00|\/\.{1,2}(?:\/|$)/i.test(path)) throw noPage();
  return path.length > 1 && path.endsWith('/') && path !== '/console/' ? path.slice(0, -1) : path;
}

const noPage = () => new GatewayError('not_found', 'There is nothing here.', { code: 'unknown_url' });

function toRequest({ request, signal }: Exchange, origin: string, path: string): Request {
  const { method, query, body } = request;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (!droppedHeaders.has(name)) headers.set(name, value);
  }
  headers.set(addressHeader, plainAddress(request.remoteAddress));
  const search = query.size === 0 ? '' : `?${query}`;
  const hasBody = method !== 'GET' && method !== 'HEAD' && body.length > 0;
  return new Request(`${origin}${path}${search}`, {
    method,
    headers,
    signal,
    ...(hasBody ? { body: body as Uint8Array<ArrayBuffer> } : {}),
  });
}

async function toAnswer(response: Response): Promise<Answer> {
  const headers: Record<string, string> = {};
  response.headers.forEach((value, name) => {
    if (name !== 'set-cookie' && name !== 'content-length') headers[name] = value;
  });
  headers['cache-control'] ??= 'no-store';
  // CSV and downloads.
  const isLong = headers['content-disposition']?.startsWith('attachment') === true && response.body !== null;
  const body = isLong ? (response.body as AsyncIterable<Uint8Array>) : new Uint8Array(await response.arrayBuffer());
  const cookies = response.headers.getSetCookie();
  return { status: response.status, headers, body, ...(cookies.length === 0 ? {} : { cookies }) };
}

/** The root of the gateway, and the console's address without a slash at its end. */
function entrance(services: ConsoleServices, request: Exchange['request'], path: string): Answer | undefined {
  if (path === '/') return root(services, request);
  return path === '/console' && !isChange(request.method) ? redirect('/console/') : undefined;
}

/** Browsers are shown what this gateway is; programs that look whether it is there get what they got before there were pages. */
function root({ settings }: ConsoleServices, { headers }: Exchange['request']): Answer {
  const vary = { vary: 'accept', 'cache-control': 'no-store' };
  if (!/\btext\/html\b/i.test(String(headers['accept'] ?? '')))
    return { status: 200, headers: { ...vary, 'content-type': 'application/json' }, body: '{"status":"ok"}' };
  return {
    status: 302,
    headers: { ...vary, location: settings.pages.models ? '/console/welcome' : '/console/' },
    body: '',
  };
}

async function pageOrFile(
  { request }: Exchange,
  services: ConsoleServices,
  files: Files,
  path: string,
): Promise<Answer> {
  if (isChange(request.method)) throw new GatewayError('method_not_allowed', 'A page is asked for by GET.');
  const name = path.slice('/console/'.length);
  const accepted = String(request.headers['accept-encoding'] ?? '');
  return (await moduleAnswer(services.addedPages(), name, accepted)) ?? files.answer(name, accepted);
}

const isChange = (method: string) => method !== 'GET' && method !== 'HEAD';

function redirect(location: string): Answer {
  return { status: 308, headers: { location, 'cache-control': 'no-store' }, body: '' };
}
