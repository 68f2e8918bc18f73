/** How the pages talk to the console's API: JSON in and out, errors as one class that knows its field. */
import { setSessionEnded } from './session-end.ts';

const base = '/console/api';

/** An answer that is not 2xx, or none at all (`status` 0). The message is written for people. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;

  constructor(status: number, code: string, message: string, field?: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/** Absent and empty members are left out of the address. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

function addressOf(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${base}${path}${text === '' ? '' : `?${text}`}`;
}

/** Each tab of a browser acts in its own account. */
export const tabAccount = (): string => sessionStorage.getItem('account') ?? '';

/** For links: they have no headers, so the address names the account. */
export const linkTo = (path: string, query: Query = {}): string => addressOf(path, { ...query, account: tabAccount() });

export function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return call<T>('GET', addressOf(path, query), undefined, {}, signal);
}

/** A change. `once` names the attempt, so that pressing twice, or trying again after a broken line, changes once. */
export function send<T = unknown>(
  method: 'POST' | 'PATCH' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
  once?: string,
): Promise<T> {
  return call<T>(method, addressOf(path), body, once === undefined ? {} : { 'idempotency-key': once });
}

/** A name for one attempt at a change. */
export const newAttempt = (): string => crypto.randomUUID();

async function call<T>(
  method: string,
  address: string,
  body: object | undefined,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<T> {
  const answer = await fetch(address, {
    method,
    credentials: 'same-origin',
    signal: signal ?? null,
    headers: {
      accept: 'application/json',
      'x-account': tabAccount(),
      // No form or link of another site can send it.
      ...(method === 'GET' ? {} : { 'x-console': '1' }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((cause: unknown) => {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, 'offline', 'offline');
  });
  const text = await answer.text();
  const parsed = parse(text);
  if (answer.ok) return parsed as T;
  const error = errorOf(answer, parsed);
  if (error.status === 401 && error.code === 'unauthenticated') setSessionEnded(true);
  throw error;
}

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Our own shape is `{error: {code, message, field?}}`; the sign-in library's is `{code, message}`, in capitals. */
function errorOf(answer: Response, parsed: unknown): ApiError {
  const outer = (parsed ?? {}) as { error?: unknown; code?: string; message?: string };
  const inner = (typeof outer.error === 'object' && outer.error !== null ? outer.error : outer) as {
    code?: string;
    message?: string;
    field?: string;
  };
  return new ApiError(
    answer.status,
    inner.code?.toLowerCase() ?? `status_${answer.status}`,
    inner.message ?? '',
    inner.field,
  );
}
