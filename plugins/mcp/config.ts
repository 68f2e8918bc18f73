/** Settings of the plugin: the servers with their prices and bounds, and bundles of their tools. */
import { duration, secretText, size, z } from '../../core/contract/schema.ts';
import { headersSchema } from '../common/domain/headers-schema.ts';
import { usd } from '../common/domain/money-schema.ts';

const serverName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,23}$/, 'must be 1 to 24 lower-case letters, digits and hyphens, a letter first');

const pattern = z.string().regex(/^[\w./*-]{1,128}$/, 'must be letters, digits, "_", ".", "-", "/" and "*"');

const price = z
  .strictObject({
    call: usd()
      .prefault(0)
      .describe('USD of one call of any of its tools. Set it where the server costs you something.'),
    tools: z
      .record(z.string().min(1).max(128), usd())
      .default({})
      .describe(
        'USD of one call of a tool, by the name that the server has for it. Add the ones that cost more or less.',
      ),
    failed: z
      .boolean()
      .default(false)
      .describe('Calls that the server reports as failed cost the same. Set it where the server bills you for them.'),
  })
  .prefault({});

const oauthSchema = z.strictObject({
  client: z
    .string()
    .min(1)
    .max(512)
    .describe("The client id that the server's token service has for the gateway. Set it with `secret`."),
  secret: secretText()
    .min(1)
    .max(4_096)
    .describe('Secret of that client. It is sent to `token_url` alone. Set it from a variable.'),
  token_url: z
    .string()
    .regex(/^https?:\/\/\S+$/, 'must be an http(s) address')
    .describe('Address of the token service. Change it when the service moves.'),
  scope: z
    .string()
    .regex(/^[\x20-\x7e]{1,1024}$/, 'must be names with blanks between them')
    .optional()
    .describe('Scopes to ask for, with blanks between them. Set it where tokens without them are of no use.'),
  resource: z
    .string()
    .min(1)
    .max(2_048)
    .optional()
    .describe(
      'What the token is for; by default the address of an MCP server, and nothing for an HTTP API. Set it where the service knows the server by another name.',
    ),
  secret_in: z
    .enum(['header', 'body'])
    .default('header')
    .describe(
      'Whether the secret is sent in the header `authorization` or in the form. Change it for services that want it in the form.',
    ),
  allow_private: z
    .boolean()
    .default(false)
    .describe('The token service may be in a private network or on this machine. Set it for a service of your own.'),
});

const connectSchema = z.strictObject({
  per: z
    .enum(['person', 'account'])
    .default('person')
    .describe(
      'Whether each person connects the server for their own keys, or one connection serves all keys of an account. Change it for servers with accounts of teams.',
    ),
  client: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe('The client id that the gateway has there; by default it registers itself. Set it where it must not.'),
  secret: secretText()
    .min(1)
    .max(4_096)
    .optional()
    .describe('Secret of that client. Set it, from a variable, where the client has one.'),
  scope: z
    .string()
    .regex(/^[\x20-\x7e]{1,1024}$/, 'must be names with blanks between them')
    .optional()
    .describe(
      'Scopes to ask for, with blanks between them; by default those that the server names. Set it to ask for fewer.',
    ),
  allow_private: z
    .boolean()
    .default(false)
    .describe(
      'The service that gives tokens may be in a private network or on this machine, without TLS. Set it for a service of your own.',
    ),
});

const serverSchema = z.strictObject({
  url: z
    .string()
    .regex(/^(?:https?:\/\/|[a-z][a-z0-9-]*:\/)\S+$/, 'must be an http(s) address')
    .optional()
    .describe(
      'Address of the server, for requests by HTTP; "sandbox:/mcp" is that of the sandbox. Change it when the server moves.',
    ),
  command: z
    .array(z.string().min(1).max(4_096))
    .min(1)
    .max(64)
    .optional()
    .describe(
      'A program that is the server, and its arguments, instead of an address. It runs as the user of the gateway, once for each of its processes. Set it, and `mcp.commands`, for a server that only runs so.',
    ),
  environment: z
    .record(z.string().regex(/^[A-Za-z_]\w{0,127}$/, 'must be the name of a variable'), z.string().max(8_192))
    .default({})
    .describe(
      'Variables of that program; of those of the gateway it has PATH, HOME and the like alone. Set what the program asks for.',
    ),
  openapi: z
    .string()
    .min(1)
    .max(2_048)
    .optional()
    .describe(
      'OpenAPI 3 document of an HTTP API at `url`, each operation of which is a tool: a path from the working directory, or an http(s) address. Set it for an API that speaks no MCP.',
    ),
  headers: headersSchema
    .default({})
    .describe('Headers of each request, such as "authorization: Bearer …". Set them where the server asks for a key.'),
  oauth: oauthSchema
    .optional()
    .describe(
      'Access tokens of OAuth for requests to the server, by the client credentials of the gateway. Set it where the server asks for tokens instead of a key.',
    ),
  connect: connectSchema
    .optional()
    .describe(
      "People connect the server with their own account there, by OAuth, on the console's page of tools. Set it where the server asks people to sign in.",
    ),
  tools: z
    .array(pattern)
    .min(1)
    .default(['*'])
    .describe('Its tools that are offered, by name; "*" stands for any characters. Narrow it to what clients need.'),
  price: price.describe('Prices of its tools, before the ratios of plan and account. Set it to charge for calls.'),
  within: duration()
    .refine((ms) => ms >= 100 && ms <= 600_000, 'must be from 100ms to 10m')
    .prefault('30s')
    .describe('Longest time of one request to the server. Raise it for tools that work for long.'),
  answer: size()
    .refine((bytes) => bytes >= 1024 && bytes <= 64 * 2 ** 20, 'must be from 1KB to 64MB')
    .prefault('1MB')
    .describe('Largest answer of the server. Raise it for tools that return files.'),
  allow_private: z
    .boolean()
    .default(false)
    .describe('The server may be in a private network or on this machine. Set it for a server of your own.'),
});

export const mcpSchema = z.strictObject({
  servers: z
    .record(serverName, serverSchema)
    .default({})
    .describe('The servers by the name that stands before each of their tools. Add one for each server.'),
  bundles: z
    .record(serverName, z.array(pattern).min(1))
    .refine((bundles) => !Object.hasOwn(bundles, 'gateway'), '"gateway" is the address of the gateway\'s own tools')
    .default({})
    .describe(
      'Lists of tools, as "crm/*" or "github/search_*", each at an address of its own, /mcp/NAME. Add one for clients that need few tools.',
    ),
  commands: z
    .boolean()
    .default(false)
    .describe(
      'Servers may be programs that the gateway starts. Set it where each of them is trusted as the gateway itself is.',
    ),
  keys: z
    .boolean()
    .default(false)
    .describe(
      'Keys without a cap may make others at /mcp/gateway, each with their own rights, a cap and an end. Set it where programs make keys for others.',
    ),
  lists: duration()
    .refine((ms) => ms >= 1_000, 'must be 1s or more')
    .prefault('1m')
    .describe('How long lists of tools, resources and prompts are kept. Lower it for servers that change often.'),
  per_account: z
    .int()
    .min(1)
    .max(100_000)
    .default(64)
    .describe('Calls of one account that run at once in one process. Lower it to protect slow servers.'),
});

export type McpConfig = z.output<typeof mcpSchema>;
export type ServerConfig = z.output<typeof serverSchema>;
