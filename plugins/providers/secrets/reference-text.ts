/** The text `secret:NAME`, which stands in a gateway file for a stored secret; in other sections than the vendors' within `${…}`. Pure. */

const namePattern = /^[a-z][a-z0-9._-]{0,62}$/i;
/** `${secret:NAME}` in settings of other plugins. */
export const storedSource = 'secret';
const mark = `${storedSource}:`;
const nameRule = 'letters, digits, dots, dashes and underscores, with a letter first';

/** The name in a reference; undefined: the text is no reference. */
export function referenceIn(text: string): string | undefined {
  return text.startsWith(mark) ? text.slice(mark.length) : undefined;
}

/** Why a name cannot be that of a secret, as the end of a sentence; undefined: it can. */
export function nameProblem(name: string): string | undefined {
  return namePattern.test(name) ? undefined : `must be ${nameRule}`;
}

const inSettings = /\$\{secret:([^}:]+)(?::-[^}]*)?\}/g;

/** The names in a gateway file's `${secret:NAME}`. */
export const namedIn = (text: string): string[] => [...text.matchAll(inSettings)].map(([, name]) => name!.trim());
export const namesAny = (text: string): boolean => namedIn(text).length > 0;
