/** Words a count of tokens as each protocol's own counting endpoint does. Pure. */
import type { Answer } from '../../../core/contract.ts';
import type { JsonObject } from '../json.ts';

const shapes: Readonly<Record<string, (tokens: number) => JsonObject>> = {
  messages: (tokens) => ({ input_tokens: tokens }),
  responses: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  gemini: (tokens) => ({ totalTokens: tokens }),
};

/** Says that nobody but the gateway has counted. */
export const estimatedHeader = 'x-gateway-estimated';

/** The answer to a client of `protocol`, which must have a counting endpoint. */
export function countAnswer(protocol: string, tokens: number, isEstimated: boolean): Answer {
  const shape = shapes[protocol];
  if (shape === undefined) throw new Error(`the protocol ${protocol} counts no tokens`);
  return {
    status: 200,
    headers: { 'content-type': 'application/json', ...(isEstimated ? { [estimatedHeader]: 'true' } : {}) },
    body: JSON.stringify(shape(tokens)),
  };
}
