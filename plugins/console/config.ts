/** The console's section of a gateway file. */
import { count, duration, secretList, secretText, z } from '../../core/contract/schema.ts';
import { roles } from './actor.ts';
import { isOrigin } from './origin.ts';

const origin = z
  .string()
  .refine((text) => text === '' || isOrigin(text), 'must be scheme and host, such as https://gateway.example');
const minSecretLength = 32;

const smtp = z
  .strictObject({
    host: z.string().default('').describe('Mail server; empty: no mail is sent, links are shown to the operator.'),
    port: z.number().int().min(1).max(65_535).default(465).describe('Its port.'),
    user: z.string().default('').describe('Name to sign in with; empty: without.'),
    password: secretText().default('').describe('Password to sign in with.'),
    from: z.string().default('').describe('Sender, such as `Gateway <gateway@example.com>`.'),
    encryption: z
      .enum(['tls', 'starttls', 'none'])
      .default('tls')
      .describe('tls from the first byte, starttls or nothing is sent, or none for a server on this machine.'),
  })
  .prefault({})
  .describe('How mails are sent: confirmations, new passwords, invitations.');

const domainName = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/,
    'must be a domain in small letters, such as acme.example',
  );
const claim = z
  .union([z.string().min(1).max(200), z.array(z.string().min(1).max(200)).min(1).max(10)])
  .describe(
    'Name of a claim, or the path to a member of one: `groups`, `realm_access.roles`, [https://acme.example/roles].',
  );
const claimValue = z.string().min(1).max(500).describe('Text that the claim is, or that is in its list.');

const provider = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be a short name of small letters')
    .refine((id) => id !== 'credential', 'is what passwords are kept under: choose another name')
    .describe('Short name; part of the address that the provider sends people back to.'),
  name: z.string().min(1).describe('What the button says.'),
  issuer: z.url({ protocol: /^https?$/ }).describe('Issuer; its discovery document is read when somebody signs in.'),
  client_id: z.string().min(1).describe('The gateway, as the provider knows it.'),
  client_secret: secretText().describe('Its secret there.'),
  scopes: z.array(z.string().min(1)).default(['openid', 'email', 'profile']).describe('Requested scopes.'),
  domains: z
    .array(domainName)
    .max(50)
    .default([])
    .describe(
      'Mail domains of its people: they get an account at their first sign-in, no other provider vouches for these addresses, and ' +
        'this one for no others. Empty: it vouches for all addresses that are of no other provider, and `sign_up` decides.',
    ),
  verified_claim: claim
    .default('email_verified')
    .describe(
      'Claim by which the provider says that it has verified the mail address; Microsoft Entra ID: `xms_edov`.',
    ),
  roles: z
    .array(z.strictObject({ claim, value: claimValue, role: z.enum(roles).describe('Role of people with it.') }))
    .max(50)
    .default([])
    .describe('Roles by claims: the first that holds, looked at whenever somebody signs in.'),
  plans: z
    .array(
      z.strictObject({
        claim,
        value: claimValue,
        plan: z.string().min(1).max(100).describe('Plan of people with it.'),
      }),
    )
    .max(50)
    .default([])
    .describe('Plans by claims: the first that holds, looked at whenever somebody signs in.'),
  sign_out: z
    .enum(['console', 'provider'])
    .default('console')
    .describe('What signing out ends: the session of the console, or also the one at the provider.'),
});

const domain = z.strictObject({
  domain: domainName.describe('Part of a mail address behind the @; subdomains are domains of their own.'),
  sign_up: z
    .enum(['open', 'invite', 'closed'])
    .optional()
    .describe(
      'Sign-up of people with such addresses; absent: `sign_up`, and open to those whom their provider vouches for.',
    ),
  passwords: z
    .enum(['on', 'off'])
    .default('on')
    .describe(
      'off: people with such addresses sign in by their provider alone, without passwords, passkeys and links by mail.',
    ),
});

const throttle = z
  .strictObject({
    per_address: count()
      .refine((value) => value >= 1, 'must be at least 1')
      .prefault(60)
      .describe('Attempts to sign in, sign up or set a password from one address within the window.'),
    per_account: count()
      .refine((value) => value >= 1, 'must be at least 1')
      .prefault(10)
      .describe(
        'Failed attempts to sign in to one account from one address within the window; ten times as many from all addresses ' +
          'together. A device on which the account has signed in before has a count of its own.',
      ),
    window: duration().prefault('5m').describe('The window.'),
  })
  .prefault({})
  .describe('How guessing passwords is slowed down.');

export const config = z
  .strictObject({
    name: z.string().max(60).default('').describe('What the pages call this gateway; empty: its name.'),
    origin: origin
      .default('')
      .describe(
        'Where browsers reach the gateway, as https://gateway.example. Needed behind TLS, for mails and for providers.',
      ),
    sign_up: z
      .enum(['open', 'invite', 'closed'])
      .default('invite')
      .describe('Sign-up: open to everyone, by an invitation of an operator, or closed.'),
    session: duration().prefault('7d').describe('How long a session lasts, from signing in.'),
    secret: secretList(minSecretLength)
      .default([])
      .describe(
        'Secret that cookies are signed and second factors encrypted with, or a list: the first for new values, all for existing ones. Empty: made once and kept in the database.',
      ),
    smtp,
    oidc: z.array(provider).max(10).default([]).describe('Providers that people can sign in by (OpenID Connect).'),
    domains: z.array(domain).max(100).default([]).describe('What holds for mail addresses of a domain.'),
    throttle,
    public: z
      .strictObject({
        models: z
          .boolean()
          .default(true)
          .describe('Makes the sold models and their prices public; browsers at `/` get a page of them.'),
        status: z
          .boolean()
          .default(true)
          .describe('Makes public, by hours, how much of its traffic each model answered, without numbers of calls.'),
      })
      .prefault({})
      .describe('Pages that need no signing in.'),
    media_origins: z
      .array(z.string().refine(isOrigin, 'must be scheme and host, such as https://files.example'))
      .max(10)
      .default([])
      .describe('Other origins that pictures and videos of results may come from, such as a bucket.'),
  })
  .superRefine(refuseUnusable)
  .superRefine(({ origin, smtp, oidc }, context) => {
    const needs = (path: string, why: string) =>
      context.addIssue({ code: 'custom', path: [path], message: `needs console.origin: ${why}` });
    if (origin === '' && smtp.host !== '') needs('smtp', 'a mail must not say where a stranger wants the link to lead');
    if (origin === '' && oidc.length > 0) needs('oidc', 'providers send people back to one fixed address');
    if (smtp.host !== '' && smtp.from === '')
      context.addIssue({ code: 'custom', path: ['smtp', 'from'], message: 'names no sender' });
  });

export type ConsoleConfig = z.output<typeof config>;
export type OidcProvider = ConsoleConfig['oidc'][number];

/** Domains and providers that do not fit one another. */
function refuseUnusable(
  settings: {
    readonly sign_up: string;
    readonly smtp: { readonly host: string };
    readonly oidc: readonly z.output<typeof provider>[];
    readonly domains: readonly z.output<typeof domain>[];
  },
  context: z.RefinementCtx,
): void {
  const { oidc, domains, smtp, sign_up } = settings;
  const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
  for (const [index, { id }] of oidc.entries())
    if (oidc.findIndex((other) => other.id === id) < index)
      refuse(['oidc', index, 'id'], 'is the id of another provider');
  for (const [index, { domain, passwords, sign_up: own }] of domains.entries()) {
    if (domains.findIndex((other) => other.domain === domain) < index)
      refuse(['domains', index, 'domain'], 'stands twice');
    const hasProvider = oidc.some((one) => one.domains.includes(domain));
    if (passwords === 'off' && !hasProvider)
      refuse(
        ['domains', index, 'passwords'],
        `locks people of ${domain} out: no provider in oidc has it in its domains`,
      );
    if (own === 'open' && sign_up !== 'open' && passwords === 'on' && smtp.host === '')
      refuse(
        ['domains', index, 'sign_up'],
        'needs smtp or passwords: off: without mails that confirm addresses, everybody can claim to be of this domain',
      );
  }
}
