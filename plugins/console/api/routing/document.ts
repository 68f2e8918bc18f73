/** The API's own description, made of its routes: OpenAPI 3.1. */

import type { OpenAPIHono } from '@hono/zod-openapi';
import { table } from '../../../../core/contract/table.ts';
import { accountRights } from '../../../common/domain/organizations/rights.ts';
import { type Access, rightOf } from './access.ts';
import type { Setting } from './router.ts';

const error = {
  description: 'What went wrong.',
  content: {
    'application/json': {
      schema: {
        type: 'object' as const,
        required: ['error'],
        properties: {
          error: {
            type: 'object' as const,
            required: ['code', 'message'],
            properties: {
              code: { type: 'string' as const },
              message: { type: 'string' as const },
              field: { type: 'string' as const },
            },
          },
        },
      },
    },
  },
};

const says: Record<string, string> = table({
  public: 'Needs no sign-in.',
  program: 'For programs, as OAuth has it: needs no sign-in, and reads no cookie.',
  person: 'For every signed-in person.',
  any: 'For every role, and for tokens.',
  read: 'For auditors and operators.',
  act: 'For operators.',
});

function ofRoles(needed: Access): string {
  const roles = accountRights[rightOf(needed)!].roles.join(', ');
  return `For members of an account, for the chosen one alone, with one of these roles in it: ${roles}.`;
}

/** Each operation states the roles that may use it, from the access table, and the shape of errors. */
export function documentOf(
  api: Pick<OpenAPIHono<Setting>, 'getOpenAPI31Document'>,
  name: string,
  access: Readonly<Record<string, Access>>,
): object {
  const document = api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: `${name} console`,
      version: '1',
      description:
        'Changes need the header "x-console: 1" unless they carry a token. A token of an operator goes into "authorization: Bearer …".',
    },
    servers: [{ url: '/console/api' }],
    security: [{ token: [] }, { session: [] }],
  });
  document.components = {
    ...document.components,
    securitySchemes: {
      token: { type: 'http', scheme: 'bearer' },
      session: {
        type: 'apiKey',
        in: 'cookie',
        name: 'console-SCHEMA.session_token',
        description: 'Of browsers; named after the schema of the gateway, with "__Secure-" before it on https.',
      },
    },
  };
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const method of ['get', 'post', 'patch', 'delete'] as const) {
      const operation = item[method];
      if (operation === undefined) continue;
      const needed = access[`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`];
      operation.description = needed === undefined ? 'Not available.' : (says[needed] ?? ofRoles(needed));
      operation.responses = { ...operation.responses, default: error };
    }
  }
  return document;
}
