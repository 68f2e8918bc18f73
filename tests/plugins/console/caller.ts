/** Calls the API without sign-in, as a client, an auditor, an operator, or with a token. */
import type { Role } from '../../../plugins/console/actor.ts';
import { createApi } from '../../../plugins/console/api/index.ts';
import type { FakeConsole } from './fake-console.ts';

/** For the API alone: of its exchange, only these are read there. */
export const noFields = { query: new URLSearchParams(), body: new Uint8Array() };
const environment = { origin: 'http://gateway.test', address: '203.0.113.7', exchange: { request: noFields } };

export type Who = 'anonymous' | 'token' | Role;
export const everybody: readonly Who[] = ['anonymous', 'client', 'auditor', 'operator', 'token'];

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

/** One caller of one console. */
export function caller(services: FakeConsole, who: Who) {
  const api = createApi(services);
  return async (route: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> => {
    const [method, path] = route.split(' ') as [string, string];
    const request = new Request(`http://gateway.test${path}`, {
      method,
      headers: {
        ...(who === 'anonymous' ? {} : who === 'token' ? { authorization: 'Bearer fake-token' } : { 'x-fake': who }),
        ...(method === 'GET' || who === 'token' ? {} : { 'x-console': '1', origin: 'http://gateway.test' }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const response = await api.fetch(request, environment);
    const text = await response.text();
    const isJson = /json(;|$)/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
  };
}
