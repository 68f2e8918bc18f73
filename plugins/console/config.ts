/** The console's section of a gateway file. */
import { count, duration, secretList, secretText, z } from '../../core/contract/schema.ts';
import { roles } from './actor.ts';
import { brand } from './brand/config.ts';
import { companies, membership } from './company/config.ts';
import type { Company, SamlSettings } from './company/types.ts';
import { isOrigin } from './origin.ts';

const origin = z
  .string()
  .refine((text) => text === '' || isOrigin(text), 'must be scheme and host, such as https://gateway.example');
const minSecretLength = 32;

const smtp = z
  .strictObject({
    host: z
      .string()
      .default('')
      .describe(
        'Mail server; empty: no mail is sent, links are shown to the operator. Set it so that people get links and new passwords by mail.',
      ),
    port: z
      .number()
      .int()
      .min(1)
      .max(65_535)
      .default(465)
      .describe('Port of the mail server. Change it to 587 for starttls.'),
    user: z
      .string()
      .default('')
      .describe('Name to sign in with at the mail server; empty: without. Set it where the server asks for one.'),
    password: secretText()
      .default('')
      .describe('Password to sign in with at the mail server. Set it together with the user.'),
    from: z
      .string()
      .default('')
      .describe(
        'Sender, such as `Gateway <gateway@example.com>`. Set it to an address that your mail server may send from.',
      ),
    encryption: z
      .enum(['tls', 'starttls', 'none'])
      .default('tls')
      .describe(
        'tls from the first byte, starttls or nothing is sent, or none for a server on this machine. Choose what your mail server offers.',
      ),
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
    'Name of a claim, or the path to a member of one: `groups`, `realm_access.roles`, [https://acme.example/roles]. Write the claim in which your provider lists groups.',
  );
const claimValue = z
  .string()
  .min(1)
  .max(500)
  .describe("Text that the claim is, or that is in its list. Write the group's name or id at the provider.");

const providerId = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be a short name of small letters')
  .refine((id) => id !== 'credential', 'is what passwords are kept under: choose another name');
const provider = z.strictObject({
  id: providerId.describe(
    'Short name of the provider; part of the address that the provider sends people back to. Keep it once it is registered there.',
  ),
  name: z.string().min(1).describe('Text of the button. Write the name by which people know the provider.'),
  issuer: z
    .url({ protocol: /^https?$/ })
    .describe(
      "Issuer; its discovery document is read when somebody signs in. Copy it from the provider's documentation.",
    ),
  client_id: z.string().min(1).describe("The gateway's id at the provider. Copy it from what you registered there."),
  client_secret: secretText().describe(
    "The gateway's secret at the provider. Copy it from what you registered there, best from a file.",
  ),
  scopes: z
    .array(z.string().min(1))
    .default(['openid', 'email', 'profile'])
    .describe('Requested scopes. Add those with which your provider sends groups.'),
  domains: z
    .array(domainName)
    .max(50)
    .default([])
    .describe(
      "Mail domains of its people: they get an account at their first sign-in, no other provider vouches for these addresses, and this one for no others; empty: it vouches for all addresses that are of no other provider, and `sign_up` decides. List your company's domains.",
    ),
  verified_claim: claim
    .default('email_verified')
    .describe(
      'Claim by which the provider says that it has verified the mail address. Set it to `xms_edov` for Microsoft Entra ID.',
    ),
  roles: z
    .array(
      z.strictObject({
        claim,
        value: claimValue,
        role: z.enum(roles).describe('Role of people with this claim. Choose auditor for those who only look.'),
      }),
    )
    .max(50)
    .default([])
    .describe(
      'Roles by claims: the first that holds, looked at whenever somebody signs in. Set it so that a group at the provider decides who operates.',
    ),
  plans: z
    .array(
      z.strictObject({
        claim,
        value: claimValue,
        plan: z.string().min(1).max(100).describe('Plan of people with this claim. Write a name of `plans.offers`.'),
      }),
    )
    .max(50)
    .default([])
    .describe(
      'Plans by claims: the first that holds, looked at whenever somebody signs in. Set it so that a group at the provider decides limits and prices.',
    ),
  ...membership(claim, claimValue),
  sign_out: z
    .enum(['console', 'provider'])
    .default('console')
    .describe(
      'What signing out ends: the session of the console, or also the one at the provider. Change it where people share machines.',
    ),
});

const domain = z.strictObject({
  domain: domainName.describe(
    'Part of a mail address behind the @; subdomains are domains of their own. Write one entry for each.',
  ),
  sign_up: z
    .enum(['open', 'invite', 'closed'])
    .optional()
    .describe(
      'Sign-up of people with such addresses. Set it when a domain differs from the rest. Default: `sign_up`, and open to those whom their provider vouches for.',
    ),
  passwords: z
    .enum(['on', 'off'])
    .default('on')
    .describe(
      'off: people with such addresses sign in by their provider alone, without passwords, passkeys and links by mail. Turn it off once single sign-on works.',
    ),
});

const throttle = z
  .strictObject({
    per_address: count()
      .refine((value) => value >= 1, 'must be at least 1')
      .prefault(60)
      .describe(
        'Attempts to sign in, sign up or set a password from one address within the window. Raise it where many people share one address.',
      ),
    per_account: count()
      .refine((value) => value >= 1, 'must be at least 1')
      .prefault(10)
      .describe(
        'Failed attempts to sign in to one account from one address within the window; ten times as many from all addresses together. A device on which the account has signed in before has a count of its own. Lower it when accounts are attacked.',
      ),
    window: duration()
      .prefault('5m')
      .describe('Time in which attempts are counted. Raise it to slow down guessing further.'),
  })
  .prefault({})
  .describe('How guessing passwords is slowed down.');

export const config = z
  .strictObject({
    name: z
      .string()
      .max(60)
      .default('')
      .describe("What the pages call this gateway; empty: its name. Set it to your product's name."),
    origin: origin
      .default('')
      .describe(
        'Where browsers reach the gateway, as https://gateway.example. Set it behind TLS, for mails and for sign-in providers.',
      ),
    sign_up: z
      .enum(['open', 'invite', 'closed'])
      .default('invite')
      .describe(
        'Sign-up: open to everyone, by an invitation of an operator or of a member of an account, or closed. Open it when strangers may become clients.',
      ),
    session: duration()
      .prefault('7d')
      .describe('How long a session lasts, from signing in. Shorten it where people share machines.'),
    brand,
    secret: secretList(minSecretLength)
      .default([])
      .describe(
        'Secret that cookies are signed and second factors encrypted with, or a list: the first for new values, all for existing ones; empty: made once and kept in the database. Set it to keep it apart from the rows.',
      ),
    smtp,
    oidc: z
      .union([z.array(provider), z.record(providerId, provider.omit({ id: true }))])
      .transform((written) =>
        Array.isArray(written)
          ? written.map((one, at) => ({ ...one, place: at as number | string }))
          : Object.entries(written).map(([id, one]) => ({ id, ...one, place: id as number | string })),
      )
      .refine((list) => list.length <= 10, 'must be at most 10 providers')
      .prefault([])
      .describe(
        'Providers that people can sign in by (OpenID Connect), by id or as a list. Add yours so that people need no password here.',
      ),
    domains: z
      .union([z.array(domain), z.record(domainName, domain.omit({ domain: true }))])
      .transform((written) =>
        Array.isArray(written)
          ? written.map((one, at) => ({ ...one, place: at as number | string }))
          : Object.entries(written).map(([name, one]) => ({ domain: name, ...one, place: name as number | string })),
      )
      .refine((list) => list.length <= 100, 'must be at most 100 domains')
      .prefault([])
      .describe(
        "What holds for mail addresses of a domain, by its name or as a list. Add your company's domain to keep passwords off.",
      ),
    throttle,
    companies,
    public: z
      .strictObject({
        models: z
          .boolean()
          .default(true)
          .describe(
            "Makes the sold models and their prices public; browsers at `/` get a page of them. Turn it off for a company's own gateway.",
          ),
        status: z
          .boolean()
          .default(true)
          .describe(
            'Makes public, by hours, how much of its traffic each model answered, without numbers of calls. Turn it off when only operators should see outages.',
          ),
      })
      .prefault({})
      .describe('Pages that need no signing in.'),
    media_origins: z
      .array(z.string().refine(isOrigin, 'must be scheme and host, such as https://files.example'))
      .max(10)
      .default([])
      .describe(
        'Other origins that pictures and videos of results may come from, such as a bucket. List the bucket when `files.s3.redirect` is on.',
      ),
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
export type OidcProvider = ConsoleConfig['oidc'][number] & {
  /** Set for that of an account: whom it signs in, and as what. */
  readonly company?: Company | undefined;
  /** Set for one that speaks SAML. */
  readonly saml?: SamlSettings | undefined;
};

/** With its index in the list, or its name. */
type Placed<Entry> = Entry & { readonly place: string | number };

/** Domains and providers that do not fit one another. */
function refuseUnusable(
  settings: {
    readonly sign_up: string;
    readonly smtp: { readonly host: string };
    readonly oidc: readonly Placed<z.output<typeof provider>>[];
    readonly domains: readonly Placed<z.output<typeof domain>>[];
  },
  context: z.RefinementCtx,
): void {
  const { oidc, domains, smtp, sign_up } = settings;
  const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
  refuseUnplaced(oidc, refuse);
  for (const [index, { id, place }] of oidc.entries())
    if (oidc.findIndex((other) => other.id === id) < index)
      refuse(['oidc', place, 'id'], 'is the id of another provider');
  for (const [index, { domain, passwords, sign_up: own, place }] of domains.entries()) {
    if (domains.findIndex((other) => other.domain === domain) < index)
      refuse(['domains', place, 'domain'], 'stands twice');
    const hasProvider = oidc.some((one) => one.domains.includes(domain));
    if (passwords === 'off' && !hasProvider)
      refuse(
        ['domains', place, 'passwords'],
        `locks people of ${domain} out: no provider in oidc has it in its domains`,
      );
    if (own === 'open' && sign_up !== 'open' && passwords === 'on' && smtp.host === '')
      refuse(
        ['domains', place, 'sign_up'],
        'needs smtp or passwords: off: without mails that confirm addresses, everybody can claim to be of this domain',
      );
  }
}

/** Providers of accounts. */
function refuseUnplaced(
  oidc: readonly Placed<z.output<typeof provider>>[],
  refuse: (path: (string | number)[], message: string) => void,
): void {
  for (const { place, account, domains: own, roles: given } of oidc) {
    if (account !== '' && own.length === 0)
      refuse(['oidc', place, 'domains'], 'is needed by account: whom it vouches for');
    if (account !== '' && given.length > 0)
      refuse(['oidc', place, 'roles'], 'cannot stand beside account: write members');
  }
}
