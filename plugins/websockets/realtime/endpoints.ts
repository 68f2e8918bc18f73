/** Endpoints of the steps of relayed sessions; a plain HTTP request to them is refused with an explanation. */
import type { Endpoint } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { call } from '../../common/domain/calls.ts';
import { envelopeAnswer } from '../../common/kit/error-envelope.ts';
import type { RelayProtocol } from '../relay/dialect.ts';
import { relayStep } from '../relay/step.ts';
import { unsupported } from './arrival.ts';

/** The endpoint of one step of a session. */
export function stepEndpoint(
  { endpoint: path }: RelayProtocol,
  own: Pick<Endpoint, 'operation' | 'renderError' | 'describes'>,
): Endpoint {
  return {
    ...own,
    method: 'GET',
    path,
    modelKind: 'realtime',
    charges: true,
    body: 'none',
    // A step has no timeout of its own: `longest` bounds its session.
    timeoutMs: 24 * 60 * 60 * 1_000,
    setsOnOpen: [call],
    open(exchange) {
      const step = exchange.find(relayStep);
      if (step === undefined)
        throw new GatewayError('upgrade_required', 'A session at this address is a WebSocket: send an upgrade.', {
          headers: { upgrade: 'websocket' },
        });
      exchange.set(call, step.call);
    },
  };
}

/** Audio over WebRTC would bypass the gateway and could not be metered. */
export const callsEndpoint: Endpoint = {
  method: 'POST',
  path: '/v1/realtime/calls',
  operation: 'realtime-calls',
  body: 'none',
  handle() {
    throw unsupported('Sessions over WebRTC are not offered: connect with a WebSocket to /v1/realtime.');
  },
  renderError: envelopeAnswer,
};
