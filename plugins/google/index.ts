/**
 * The credential scheme of Google Cloud: access tokens for a service account, a user's refresh token or a federated identity, or
 * from the metadata server of the machine.
 */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { bearerOf, type ComputedScheme, Refreshed, vendorCredentials } from '../common/wire/credentials.ts';
import { fetchToken } from './tokens.ts';

const settings = z.strictObject({
  scope: z
    .string()
    .regex(/^[\x21-\x7e]{1,500}$/, 'must be printable ASCII without spaces')
    .default('https://www.googleapis.com/auth/cloud-platform')
    .describe('What the token is for. Change it where the service asks for another scope.'),
  metadata: z
    .url({ protocol: /^https?$/ })
    .default('http://metadata.google.internal')
    .describe(
      'Address of the metadata server, which is asked where the provider has no `keys`. Change it for tests alone.',
    ),
  quota_project: z
    .string()
    .regex(/^[a-z0-9:.-]{1,100}$/, 'must be the id of a project')
    .optional()
    .describe(
      'Project to which requests are counted. Set it where that is another project than the credential’s. Default: that of the credential.',
    ),
});

/** The metadata server gives out the same token until five minutes before its end. */
const aheadMs = 225_000;

const scheme: ComputedScheme<z.output<typeof settings>> = {
  name: 'google',
  config: settings,
  needsNoKey: true,
  open({ quota_project: project, ...source }, key, { clock, fetch }) {
    const load = (signal: AbortSignal) => fetchToken({ ...source, key, clock, fetch, signal });
    const tokens = new Refreshed<string>({ clock, load, aheadMs });
    const counted = project === undefined ? {} : { 'x-goog-user-project': project };
    return bearerOf(tokens, counted);
  },
};

export default definePlugin({
  name: 'google',
  config: z.strictObject({}),
  extends: [vendorCredentials],
  setup(host) {
    host.extend(vendorCredentials, scheme);
    return {};
  },
});
