/** Who asks: a person who is signed in, or a script with a token, and what they may see. Types alone. */

/** `client`: their own account. `auditor`: reads what an operator reads. `operator`: everything. */
export const roles = ['client', 'auditor', 'operator'] as const;
export type Role = (typeof roles)[number];
/** Roles of tokens: scripts have no account of their own. */
export const tokenRoles = ['auditor', 'operator'] as const;
export type TokenRole = (typeof tokenRoles)[number];

export interface Actor {
  readonly kind: 'person' | 'token';
  /** Id of the person or the token. */
  readonly id: string;
  /** The person's mail address, or the token's name. */
  readonly label: string;
  readonly role: Role;
  /** The account that a person has chosen in this session; absent: the one that was made for them. */
  readonly chosen?: string | undefined;
  /** The account that the request names, as each tab of a browser does: it acts there or not at all. */
  readonly named?: string | undefined;
  /** The account that this session is for alone, since it began at that account's own provider. */
  readonly company?: string | undefined;
}
