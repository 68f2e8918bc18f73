/** What goes to the upstream: address, headers by allow-list, body, and the target's time-outs. Pure. */
import type { ClientRequest, Headers, UpstreamRequest } from '../../core/contract.ts';
import type { Target } from '../../core/vocabulary.ts';
import type { Prepared, Protocol } from './protocol.ts';

/** Every header that leaves is named here, by the protocol or by the provider's configuration; nothing else of the client's passes. */
export function wordUpstreamRequest(
  protocol: Protocol,
  request: Pick<ClientRequest, 'headers'>,
  prepared: Prepared,
  target: Target,
  stream: boolean,
): UpstreamRequest {
  const { upstream } = target;
  return {
    url: target.baseUrl + prepared.path,
    method: 'POST',
    headers: headersFor(protocol, request.headers, target, stream),
    body: prepared.body,
    credential: target.credential,
    stream,
    connectTimeoutMs: upstream.connectTimeoutMs,
    firstByteTimeoutMs: upstream.firstByteTimeoutMs,
    idleTimeoutMs: upstream.idleTimeoutMs,
    drain: upstream.drain,
  };
}

function headersFor(protocol: Protocol, client: Readonly<Headers>, target: Target, stream: boolean): Headers {
  const headers: Headers = { ...protocol.defaultHeaders, 'content-type': client['content-type'] ?? 'application/json' };
  headers['accept'] = client['accept'] ?? (stream ? 'text/event-stream' : 'application/json');
  for (const name of protocol.passedHeaders) {
    const value = client[name];
    if (value !== undefined && value !== '') headers[name] = value;
  }
  for (const [name, value] of Object.entries(target.upstream.headers)) headers[name.toLowerCase()] = value;
  const { header, value } = target.upstream.auth ?? protocol.auth;
  headers[header.toLowerCase()] = value.replace('{key}', () => target.key.reveal());
  // An encoded stream could not be looked at as it passes.
  headers['accept-encoding'] = 'identity';
  return headers;
}
