/** Errors of Chat Completions and Responses, whole and inside a chat stream. Pure. */
import type { Fault } from '../fault.ts';
import type { Refusal } from '../protocol.ts';

/** `type` and `code` by status, as recorded; 402 is not the original vendor's but occurs at others of this dialect. */
const typesByStatus: Record<number, readonly [type: string, code: string | null]> = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  402: ['insufficient_quota', 'insufficient_quota'],
  403: ['request_forbidden', null],
  404: ['invalid_request_error', 'model_not_found'],
  429: ['requests', 'rate_limit_exceeded'],
  500: ['server_error', null],
  503: ['server_error', 'server_is_overloaded'],
};

export interface WireFault {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

export function wireFault(fault: Fault): WireFault {
  const [type, code] = typesByStatus[fault.status] ?? [
    fault.status >= 500 ? 'server_error' : 'invalid_request_error',
    null,
  ];
  return { message: fault.message, type, param: fault.field ?? null, code: fault.code ?? code };
}

export function chatFault({ fault }: Pick<Refusal, 'fault'>): { body: string; headers: Record<string, string> } {
  const headers: Record<string, string> = {};
  if (fault.retryAfter !== undefined) headers['retry-after'] = String(fault.retryAfter);
  if (fault.status === 429) {
    headers['x-ratelimit-limit-requests'] = '60';
    headers['x-ratelimit-remaining-requests'] = '0';
    headers['x-ratelimit-reset-requests'] = `${fault.retryAfter ?? 1}s`;
  }
  return { body: `${JSON.stringify({ error: wireFault(fault) }, null, 2)}\n`, headers };
}

/** Headers of every answer of this dialect. */
export function chatHeaders(id: string): Record<string, string> {
  return { 'x-request-id': `req_${id}`, 'openai-version': '2020-10-01', 'openai-processing-ms': '1' };
}

/** `Authorization: Bearer KEY`. */
export function bearerKey(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^bearer\s+(.+)$/i.exec(authorization)?.[1]?.trim();
}
