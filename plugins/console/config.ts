/** The console's section of a gateway file. */
import { count, duration, secretList, secretText, z } from '../../core/contract/schema.ts';
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

const provider = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be a short name of small letters')
    .describe('Short name; part of the address that the provider sends people back to.'),
  name: z.string().min(1).describe('What the button says.'),
  issuer: z.url({ protocol: /^https?$/ }).describe('Issuer; its discovery document is read when the console starts.'),
  client_id: z.string().min(1).describe('The gateway, as the provider knows it.'),
  client_secret: secretText().describe('Its secret there.'),
  scopes: z.array(z.string().min(1)).default(['openid', 'email', 'profile']).describe('Requested scopes.'),
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
  .superRefine(({ origin, smtp, oidc }, context) => {
    const needs = (path: string, why: string) =>
      context.addIssue({ code: 'custom', path: [path], message: `needs console.origin: ${why}` });
    if (origin === '' && smtp.host !== '') needs('smtp', 'a mail must not say where a stranger wants the link to lead');
    if (origin === '' && oidc.length > 0) needs('oidc', 'providers send people back to one fixed address');
    if (smtp.host !== '' && smtp.from === '')
      context.addIssue({ code: 'custom', path: ['smtp', 'from'], message: 'names no sender' });
  });

export type ConsoleConfig = z.output<typeof config>;
