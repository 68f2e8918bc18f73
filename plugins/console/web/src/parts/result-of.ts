/** How a request ended, divided as the API's filter `result` divides requests: what broke off has failed, whatever its status said. */
import type { RequestResult, RequestRow } from '../api/types.ts';

export function resultOf({ status, outcome }: Pick<RequestRow, 'status' | 'outcome'>): RequestResult {
  if (outcome === 'client_left') return 'left';
  if (outcome === 'failed' || status >= 500) return 'upstream_error';
  return status >= 400 ? 'client_error' : 'ok';
}
