/** What the sign-in by SAML is made of. Types and names alone. */
import type { Clock, Log, Random } from '../../../../core/contract/host-tools.ts';
import type { Orm } from '../../../common/domain/database.ts';
import type { OidcProvider } from '../../config.ts';
import type { Secrets } from '../../people/secrets.ts';
import type { PeopleTables } from '../../people/tables.ts';
import type { Throttle } from '../../people/throttle.ts';
import type { SamlSettings } from '../types.ts';

export interface SamlParts {
  readonly orm: Orm;
  readonly tables: Pick<PeopleTables, 'verification'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly throttle: Pick<Throttle, 'take'>;
  readonly secrets: () => Secrets;
  readonly cookiePrefix: string;
}

export type SamlProvider = OidcProvider & { readonly saml: SamlSettings };

export const samlPath = '/console/saml';

/** Where responses are taken, and what this gateway is called at the provider. */
export const samlAddresses = (origin: string, providerId: string) => ({
  acs: `${origin}${samlPath}/${providerId}`,
  entityId: `${origin}${samlPath}/${providerId}/metadata`,
});
