/** The credential scheme of Azure: a resource's key in the header `api-key`, or a token of Entra for a registered application. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { type ComputedScheme, Refreshed, vendorCredentials } from '../common/wire/credentials.ts';
import { fetchToken } from './entra-token.ts';

const segment = z.string().regex(/^[\w.-]{1,100}$/, 'must be letters, digits, dots, dashes and underscores');

const entraSettings = z.strictObject({
  tenant: segment.describe('The directory of the application: its id or domain.'),
  client_id: segment.describe('The application.'),
  token_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File with a federated token, read for each token of Entra, in place of the application's secret in `keys`.",
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

const settings = z.strictObject({
  entra: entraSettings
    .optional()
    .describe("The application that asks for tokens; `keys` are its secrets. Absent: `keys` are the resource's own."),
});

const scheme: ComputedScheme<z.output<typeof settings>> = {
  name: 'azure',
  config: settings,
  needsNoKey: true,
  open({ entra }, key, { clock }) {
    if (key.reveal() === '' && entra?.token_file === undefined) throw new Error('it has no key: write one under keys');
    if (entra === undefined) return { authorize: () => ({ 'api-key': key.reveal() }) };
    const tokens = new Refreshed({ clock, load: (signal) => fetchToken(entra, key, clock, signal) });
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    return {
      authorize() {
        const token = tokens.get();
        return typeof token === 'string' ? bearer(token) : token.then(bearer);
      },
    };
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
