/** The gateway's own error shape: every error, whatever the protocol, before an answer and inside a running one. */
import { type Answer, definePlugin, type Exchange } from '../../core/contract.ts';
import type { GatewayError } from '../../core/errors.ts';
import { z } from '../../core/schema.ts';
import { errorShape } from '../../core/vocabulary.ts';
import { codeOf } from './codes.ts';

const placeholder = /\{([A-Za-z_]*)\}/g;
const placeholders = new Set(['CODE', 'message', 'request_id']);

const template = z
  .string()
  .refine((text) => [...text.matchAll(placeholder)].every(([, name]) => placeholders.has(name!)), {
    error: 'may hold {CODE}, {message} and {request_id}',
  });

/** Protocols have a place of their own for the field at fault; here the message is all there is, and a vendor's may not name it. */
function toldOf({ message, field }: GatewayError): string {
  const named =
    field === undefined ||
    message
      .toLowerCase()
      .split(/[^\w-]+/)
      .includes(lastNameIn(field));
  return named ? message : `${message} Field: "${field}".`;
}

/** `messages[2].content` → `content`. */
function lastNameIn(field: string): string {
  return field
    .replace(/(?:\[\w+\]|\.\d+)+$/, '')
    .split('.')
    .at(-1)!
    .toLowerCase();
}

export default definePlugin({
  name: 'error-shape',
  config: z.strictObject({
    body: z
      .record(z.string().min(1), template)
      .refine((members) => Object.keys(members).length > 0, 'needs a member')
      .prefault({ code: '{CODE}', message: '{message}' })
      .describe('Members of an error body; {CODE}, {message} and {request_id} are filled in.'),
  }),
  provides: [errorShape],
  setup(host, config) {
    let members = Object.entries(config.body);
    const worded = (error: GatewayError, requestId: string) => {
      const values: Record<string, string> = { CODE: codeOf(error), message: toldOf(error), request_id: requestId };
      return Object.fromEntries(
        members.map(([name, text]) => [name, text.replace(placeholder, (_, key: string) => values[key]!)]),
      );
    };
    host.provide(errorShape, { members: worded });
    return {
      renderError: (error: GatewayError, exchange: Exchange | undefined): Answer => ({
        status: error.status,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(worded(error, exchange?.id ?? '')),
      }),
      prepare: ({ body }) => {
        return () => {
          members = Object.entries(body);
        };
      },
    };
  },
});
