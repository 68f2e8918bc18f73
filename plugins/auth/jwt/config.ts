/** The setting `auth.jwt`: who may call with tokens of another system, and for which account. */
import { duration, z } from '../../../core/contract/schema.ts';

const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA'],
] as const;
const text = z.string().trim().min(1).max(200);
const claim = z.strictObject({
  claim: text.describe('Name of the claim that says it. Write one that the issuer sets, not its clients.'),
});
const address = z
  .url({ protocol: /^https?$/, error: 'must be an address such as https://login.example.com' })
  .max(1_000);
const longestLeewayMs = 120_000;

export const jwtIssuer = z.strictObject({
  issuer: address.describe('What tokens say in `iss`, to the letter. Write that of the system that signs them.'),
  audience: text.describe('What tokens must name in `aud`, to the letter. Choose one that no other service takes.'),
  account: z
    .union([text, claim])
    .describe(
      'Account that pays, by name or id, or the claim that says it, whose issuer then chooses among all accounts.',
    ),
  project: z.union([text, claim]).optional().describe('Project of the calls. Set it to sum their cost up by itself.'),
  person: z
    .union([text, claim])
    .optional()
    .describe('Id of the member of the account that calls are attributed to. Leave it out for workloads.'),
  models: z
    .union([z.array(text).min(1).max(100), claim])
    .optional()
    .describe('Models that tokens may call, or the claim that lists them; absent: all. Set it to narrow them.'),
  require: z
    .record(text, z.union([text, z.array(text).min(1).max(100)]))
    .default({})
    .describe(
      'Claims that must have this value, or one of these. Needed where anybody can get tokens of the issuer, as of a public build service.',
    ),
  jwks: address
    .optional()
    .describe(
      "Address of the issuer's public keys; default: what its /.well-known/openid-configuration says. Write it where there is none.",
    ),
  algorithms: z
    .array(z.enum(algorithms))
    .min(1)
    .default(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'])
    .describe('Signatures that are taken. Narrow it to the one that the issuer uses.'),
  leeway: duration()
    .refine((value) => value <= longestLeewayMs, 'must be at most 2m')
    .prefault('30s')
    .describe("How far the issuer's clock may be off. Raise it when tokens are refused right after they are made."),
  allow_private: z
    .boolean()
    .default(false)
    .describe('Its addresses may lie in a private network or on this machine. Turn it on for an issuer of your own.'),
});
export type JwtIssuer = z.output<typeof jwtIssuer>;
