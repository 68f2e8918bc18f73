/**
 * Errors for earlier objects that do not exist: the same for unknown and expired ids and for ids of other accounts.
 * Pure.
 */
import { GatewayError } from '../../../core/contract/errors.ts';

/** Clients react to exactly this code: they send the whole conversation again. */
const code = 'previous_response_not_found';

export function previousResponseNotFound(id: string): GatewayError {
  const message = `Previous response with id '${shown(id)}' not found.`;
  return new GatewayError('invalid_request', message, { field: 'previous_response_id', code });
}

export function itemNotFound(id: string): GatewayError {
  return new GatewayError('invalid_request', `Item with id '${shown(id)}' not found.`, { field: 'input', code });
}

/** The references of the request are stored in several places that do not share data. */
export function cannotContinueTogether(): GatewayError {
  const message = 'The request refers to earlier answers that cannot be continued together.';
  return new GatewayError('invalid_request', message, { field: 'previous_response_id', code });
}

/** The error of endpoints with a response id. */
export function responseNotFound(id: string): GatewayError {
  return new GatewayError('not_found', `Response with id '${shown(id)}' not found.`);
}

function shown(id: string): string {
  return id.slice(0, 200);
}
