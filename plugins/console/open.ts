/** Puts the serving console together: people, sign-in, API, files, live pages. */
import { hashPassword } from 'better-auth/crypto';
import type { Host } from '../../core/contract.ts';
import type { Database } from '../../core/vocabulary.ts';
import type { Console } from './api/router.ts';
import type { ConsoleConfig } from './config.ts';
import { Files } from './files.ts';
import { Live } from './live.ts';
import { openAudit } from './people/audit.ts';
import { sessionCookieName } from './people/cookies.ts';
import { openPeople } from './people/desk.ts';
import type { Links } from './people/links.ts';
import { type Mailer, openMailer } from './people/mail.ts';
import { loadSecret } from './people/secrets.ts';
import { createSignIn } from './people/sign-in.ts';
import { openPeopleStore } from './people/store.ts';
import { houseTables, peopleTables } from './people/tables.ts';
import { Throttle } from './people/throttle.ts';
import { openTokens } from './people/tokens.ts';
import { createSite, refuseLarge, type Site } from './site.ts';

export interface OpenParts {
  readonly host: Host;
  readonly store: Database;
  readonly settings: ConsoleConfig;
  readonly links: Links;
  /** Of the built pages; by default this plugin's own. */
  readonly pages?: URL;
}

export interface OpenedConsole {
  readonly site: Site;
  readonly live: Live;
  readonly refuseLarge: typeof refuseLarge;
  firstOperatorMissing(): Promise<boolean>;
  prune(): Promise<void>;
  close(): Promise<void>;
}

export async function openConsole({ host, store, settings, links, pages }: OpenParts): Promise<OpenedConsole> {
  const { orm, schema } = store;
  const { clock, random, log } = host;
  const tables = peopleTables(schema);
  const house = houseTables(schema);
  const newId = () => random.bytes(16).toString('hex');
  const name = settings.name || host.gateway;
  const secret = await loadSecret(orm, house, settings.secret, random);
  const mailer: Mailer | undefined = settings.smtp.host === '' ? undefined : openMailer(settings.smtp, log);
  const cookiePrefix = `console-${schema}`;
  const sessionCookie = sessionCookieName({ prefix: cookiePrefix, secure: settings.origin.startsWith('https:') });
  const tokens = openTokens(orm, house, { clock, random, newId });
  const peopleStore = openPeopleStore(orm, tables);
  const people = openPeople({
    host,
    clock,
    orm,
    tables,
    store: peopleStore,
    links,
    tokens,
    mailer,
    newId,
    secret,
    sessionCookie,
    hashPassword,
    settings: { name, origin: settings.origin },
  });
  const throttle = new Throttle(clock);
  const audit = openAudit(orm, house, { clock, newId });
  const hall: Console = {
    find: host.find,
    clock,
    people,
    tokens,
    audit,
    throttle,
    settings: {
      name,
      signUp: settings.sign_up,
      mail: mailer !== undefined,
      oidc: settings.oidc.map(({ id, name }) => ({ id, name })),
    },
  };
  const { per_address: perAddress, per_account: perAccount, window: windowMs } = settings.throttle;
  const signIn = createSignIn({
    orm,
    tables,
    secret,
    links,
    mailer,
    clock,
    log,
    people,
    store: peopleStore,
    newId,
    throttle,
    audit,
    settings: {
      name,
      cookiePrefix,
      signUp: settings.sign_up,
      sessionMs: settings.session,
      oidc: settings.oidc,
      throttle: { perAddress, perAccount, windowMs },
    },
  });
  const folder = pages ?? new URL('./web/dist/', import.meta.url);
  const files = new Files({ folder, mediaOrigins: settings.media_origins, clock, random });
  return {
    site: createSite({ hall, signIn, files, origin: settings.origin }),
    live: new Live({ host, clock, people, origin: settings.origin }),
    refuseLarge,
    firstOperatorMissing: () => people.firstOperatorMissing(),
    async prune() {
      await peopleStore.prune(new Date(clock.now()));
      await links.prune();
    },
    async close() {
      await mailer?.close();
    },
  };
}
