/** The credential scheme of Azure: a resource's key in the header `api-key`, or a token of Entra for a registered application or a managed identity. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { bearerOf, type ComputedScheme, Refreshed, vendorCredentials } from '../common/wire/credentials.ts';
import { fetchMachineToken, fetchToken } from './tokens.ts';

const segment = z.string().regex(/^[\w.-]{1,100}$/, 'must be letters, digits, dots, dashes and underscores');

const entraSettings = z.strictObject({
  tenant: segment.describe('The directory of the application: its id or domain. Copy it from the Azure portal.'),
  client_id: segment.describe('Id of the application. Copy it from the Azure portal.'),
  token_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File with a federated token, read for each token of Entra, instead of the application's secret in `keys`. Set it for workload identities of Kubernetes.",
    ),
  authority: z
    .url({ protocol: /^https?$/ })
    .default('https://login.microsoftonline.com')
    .describe('Where tokens are given out. Change it for a national cloud.'),
  scope: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/, 'must be printable ASCII without spaces')
    .default('https://cognitiveservices.azure.com/.default')
    .describe('What the token is for. Change it where the resource asks for another scope.'),
});

const identitySettings = z.strictObject({
  client_id: segment
    .optional()
    .describe(
      'Id of a user-assigned identity. Set it where the machine has several. Default: the identity of the system.',
    ),
  metadata: z
    .url({ protocol: /^https?$/ })
    .default('http://169.254.169.254')
    .describe('Address of the metadata service of the machine. Change it for tests alone.'),
  resource: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/, 'must be printable ASCII without spaces')
    .default('https://cognitiveservices.azure.com')
    .describe('What the token is for. Change it for a national cloud.'),
});

const settings = z
  .strictObject({
    entra: entraSettings
      .optional()
      .describe(
        "The application that asks for tokens; `keys` are its secrets. Set it where the resource takes no keys of its own. Default: none; `keys` are the resource's own.",
      ),
    managed_identity: identitySettings
      .optional()
      .describe(
        'The identity of the machine, instead of `keys` and `entra`; `{}` for that of the system. Set it on machines in Azure. Default: none.',
      ),
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
