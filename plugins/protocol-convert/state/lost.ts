/** How clients are told that something earlier is not there: unknown, expired and somebody else's are the same to them. Pure. */
import { GatewayError } from '../../../core/errors.ts';

/** Clients act on exactly this code: they send the whole conversation again. */
const code = 'previous_response_not_found';

export function previousResponseLost(id: string): GatewayError {
  const message = `Previous response with id '${shown(id)}' not found.`;
  return new GatewayError('invalid_request', message, { field: 'previous_response_id', code });
}

export function itemLost(id: string): GatewayError {
  return new GatewayError('invalid_request', `Item with id '${shown(id)}' not found.`, { field: 'input', code });
}

/** What the request refers to is kept in several places that know nothing of one another. */
export function scattered(): GatewayError {
  const message = 'The request refers to earlier answers that cannot be continued together.';
  return new GatewayError('invalid_request', message, { field: 'previous_response_id', code });
}

/** For addresses that name a response. */
export function responseNotFound(id: string): GatewayError {
  return new GatewayError('not_found', `Response with id '${shown(id)}' not found.`);
}

function shown(id: string): string {
  return id.slice(0, 200);
}
