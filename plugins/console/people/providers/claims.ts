/** Roles and plans by what a provider says of a person. Pure. */

export type Claims = Readonly<Record<string, unknown>>;

/** A claim's name, or the path to a member of one; a name with dots is also tried as a path. */
type ClaimPath = string | readonly string[];

interface Rule {
  readonly claim: ClaimPath;
  readonly value: string;
}

/** The first rule that holds. `unknown`: the provider has left the claim out because it is too long, and says so. */
export function firstMatch<T extends Rule>(rules: readonly T[], claims: Claims): T | 'unknown' | undefined {
  const found = rules.find(({ claim, value }) => valuesOf(claimAt(claims, claim)).includes(value));
  return found ?? (rules.some(({ claim }) => isLeftOut(claims, claim)) ? 'unknown' : undefined);
}

export function claimAt(claims: Claims, path: ClaimPath): unknown {
  if (typeof path !== 'string') return memberAt(claims, path);
  return Object.hasOwn(claims, path) ? claims[path] : memberAt(claims, path.split('.'));
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function valuesOf(value: unknown): string[] {
  return [value].flat().flatMap((one) => (typeof one === 'object' || one === undefined ? [] : [String(one)]));
}

/** Claims elsewhere: https://openid.net/specs/openid-connect-core-1_0.html#AggregatedDistributedClaims */
function isLeftOut(claims: Claims, path: ClaimPath): boolean {
  const [name] = typeof path === 'string' ? [path] : path;
  const elsewhere = claims['_claim_names'];
  return typeof elsewhere === 'object' && elsewhere !== null && Object.hasOwn(elsewhere, name!);
}
