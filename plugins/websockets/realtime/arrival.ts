/** An upgrade to a realtime session: the model of its address, and a key sent as a subprotocol. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ClientRequest } from '../../../core/contract/message.ts';
import { keyProtocol } from '../connections.ts';
import { isSecret } from './secrets.ts';

const betaProtocol = 'openai-beta.realtime-v1';

/** Throws if the address names no model, or one that is not offered. */
export function modelOf({ query }: ClientRequest): string {
  const model = query.get('model') ?? '';
  if (query.has('call_id')) throw unsupported('Calls over WebRTC and SIP are not offered; name a model.', 'call_id');
  if (model !== '' && model.length <= 200) return model;
  throw new GatewayError('invalid_request', 'The address must name a model: /v1/realtime?model=…', { field: 'model' });
}

/** The short-lived key of an upgrade; undefined: it has none. */
export function presentedSecret({ headers }: ClientRequest): string | undefined {
  const key = /^bearer[ \t]+(\S+)$/i.exec(headers['authorization'] ?? '')?.[1];
  return key !== undefined && isSecret(key) ? key : undefined;
}

/** The address may omit the model of the short-lived key; it must not name another. */
export function checkModel({ query }: ClientRequest, model: string): void {
  const named = query.get('model');
  if (named === null || named === model) return;
  throw new GatewayError('forbidden', 'The client secret is for another model.', {
    field: 'model',
    shouldRetry: false,
  });
}

/** The request with the headers that its subprotocols replace. */
export function withProtocols(request: ClientRequest): ClientRequest {
  const { method, path, query, params, remoteAddress, body, bodyBytes } = request;
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  const key = offered.find((name) => name.startsWith(keyProtocol))?.slice(keyProtocol.length);
  const headers = { ...request.headers };
  if (key !== undefined && key !== '' && headers['authorization'] === undefined)
    headers['authorization'] = `Bearer ${key}`;
  if (offered.includes(betaProtocol) && headers['openai-beta'] === undefined) headers['openai-beta'] = 'realtime=v1';
  return { method, path, query, headers, params, remoteAddress, body, bodyBytes };
}

export function unsupported(message: string, field?: string): GatewayError {
  return new GatewayError('unsupported', message, { ...(field === undefined ? {} : { field }), shouldRetry: false });
}
