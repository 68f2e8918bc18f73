/** A configurable error shape: for every error in every protocol, before an answer and inside a stream. */

import { definePlugin, type Exchange } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { z } from '../../core/contract/schema.ts';
import { errorShape } from '../common/domain/error-shape.ts';
import { codeOf } from './codes.ts';

const placeholder = /\{([A-Za-z_]*)\}/g;
const placeholders = new Set(['CODE', 'message', 'request_id']);

const template = z
  .string()
  .refine((text) => [...text.matchAll(placeholder)].every(([, name]) => placeholders.has(name!)), {
    error: 'may hold {CODE}, {message} and {request_id}',
  });

/**
 * Protocols have a member for the field at fault; this shape has only the message, and a vendor's message may not name
 * the field.
 */
function messageWithField({ message, field }: GatewayError): string {
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
      .describe(
        'Members of an error body; {CODE}, {message} and {request_id} are filled in. Change it to the shape that your clients parse.',
      ),
  }),
  services: { provides: [errorShape] },
  setup(host, config) {
    let members = Object.entries(config.body);
    const renderMembers = (error: GatewayError, requestId: string) => {
      const values: Record<string, string> = {
        CODE: codeOf(error),
        message: messageWithField(error),
        request_id: requestId,
      };
      return Object.fromEntries(
        members.map(([name, text]) => [name, text.replace(placeholder, (_, key: string) => values[key]!)]),
      );
    };
    host.provide(errorShape, { members: renderMembers });
    return {
      renderError: (error: GatewayError, exchange: Exchange | undefined): Answer => ({
        status: error.status,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(renderMembers(error, exchange?.id ?? '')),
      }),
      reload: {
        prepare: ({ body }) => {
          return () => {
            members = Object.entries(body);
          };
        },
      },
    };
  },
});
