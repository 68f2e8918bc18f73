/** What the console and the pages for clients know of one another: its look and who reads; where those pages are. */
import { defineService } from '../../../../core/contract/contract.ts';

export interface ConsoleLook {
  /** What its pages call this gateway. */
  readonly name: string;
  /** Scheme and host, as configured; empty: as each request says. */
  readonly origin: string;
  readonly logo: string | undefined;
  readonly favicon: string | undefined;
  /** Origins that these pictures come from. */
  readonly pictureOrigins: readonly string[];
  /** Ten shades of the operator's colour, from the palest to the darkest; empty: the product's own. */
  readonly shades: readonly string[];
  /** Addresses of the legal texts that there are. */
  readonly legal: { readonly terms?: string; readonly imprint?: string };
  /** Whether strangers see the sold models and their prices. */
  readonly publishesModels: boolean;
}

/** A person who is signed in. */
interface ConsoleReader {
  readonly name: string;
  /** undefined: has no account of this gateway yet. */
  readonly accountId: string | undefined;
  /** What their role in the account includes. */
  readonly seesMoney: boolean;
  readonly seesKeys: boolean;
}

export interface ConsoleSite {
  look(): ConsoleLook;
  /** By the session's cookie; undefined: not signed in. */
  readerOf(cookie: string): Promise<ConsoleReader | undefined>;
}

/** While the gateway serves. */
export const consoleSite = defineService<ConsoleSite>('console site');

/** The pages for clients; undefined: they are off. */
export const docsSite = defineService<{ address(): string | undefined }>('docs site');
