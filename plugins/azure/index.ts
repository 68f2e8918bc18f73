/** The credential scheme of Azure: a resource's key in the header `api-key`, or a token of Entra for a registered application or a managed identity. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { bearerOf, type ComputedScheme, Refreshed, vendorCredentials } from '../common/wire/credentials.ts';
import { fetchMachineToken, fetchToken } from './tokens.ts';

const segment = z.string().regex(/^[\w.-]{1,100}$/, 'must be letters, digits, dots, dashes and underscores');

const entraSettings = z.strictObject({
  tenant: segment.describe('The directory of the application: its id or domain.'),
  client_id: segment.describe('The application.'),
  token_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File with a federated token, read for each token of Entra, instead of the application's secret in `keys`.",
    ),
  authority: z
    .url({ protocol: /^https?$/ })
    .default('https://login.microsoftonline.com')
    .describe('Where tokens are given out.'),
  scope: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/, 'must be printable ASCII without spaces')
    .default('https://cognitiveservices.azure.com/.default')
    .describe('What the token is for.'),
});

const identitySettings = z.strictObject({
  client_id: segment.optional().describe('A user-assigned identity; absent: the identity of the system.'),
  metadata: z
    .url({ protocol: /^https?$/ })
    .default('http://169.254.169.254')
    .describe('Address of the metadata service of the machine.'),
  resource: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/, 'must be printable ASCII without spaces')
    .default('https://cognitiveservices.azure.com')
    .describe('What the token is for.'),
});

const settings = z
  .strictObject({
    entra: entraSettings
      .optional()
      .describe("The application that asks for tokens; `keys` are its secrets. Absent: `keys` are the resource's own."),
    managed_identity: identitySettings
      .optional()
      .describe('The identity of the machine, instead of `keys` and `entra`; `{}` for that of the system.'),
  })
  .refine(
    ({ entra, managed_identity: identity }) => entra === undefined || identity === undefined,
    'must have only one of entra and managed_identity',
  );

const scheme: ComputedScheme<z.output<typeof settings>> = {
  name: 'azure',
  config: settings,
  needsNoKey: true,
  open({ entra, managed_identity: identity }, key, { clock, fetch }) {
    const hasKey = key.reveal() !== '';
    if (hasKey && identity !== undefined) throw new Error('a managed identity has no keys: remove them');
    if (!hasKey && entra?.token_file === undefined && identity === undefined)
      throw new Error('it has no key: write one under keys');
    if (entra === undefined && identity === undefined) return { authorize: () => ({ 'api-key': key.reveal() }) };
    const load = (signal: AbortSignal) =>
      identity === undefined
        ? fetchToken(entra!, key, { clock, fetch }, signal)
        : fetchMachineToken(identity, clock, signal);
    return bearerOf(new Refreshed({ clock, load }));
  },
};

export default definePlugin({
  name: 'azure',
  config: z.strictObject({}),
  extends: [vendorCredentials],
  setup(host) {
    host.extend(vendorCredentials, scheme);
    return {};
  },
});
