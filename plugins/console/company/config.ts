/** Settings of the sign-in of companies: what owners of accounts may set up by themselves. */
import { z } from '../../../core/contract/schema.ts';
import { memberRoles } from '../../common/domain/organizations/rights.ts';

/** Owners are made by owners alone. */
export const grantedRoles = memberRoles.filter((role) => role !== 'owner');
export type GrantedRole = Exclude<(typeof memberRoles)[number], 'owner'>;

export const companies = z
  .strictObject({
    sign_in: z
      .boolean()
      .default(true)
      .describe(
        'Whether owners of accounts may set up a provider for the mail domains of their company. Turn it off where one company uses this gateway.',
      ),
    private_providers: z
      .boolean()
      .default(false)
      .describe(
        'Whether their providers may be on private addresses, and without TLS. Turn it on where all owners are trusted and their providers are on your network.',
      ),
    dns: z
      .array(z.string().regex(/^[0-9a-fA-F.:[\]]+$/, 'must be an address, such as 10.0.0.2 or 10.0.0.2:5353'))
      .max(5)
      .default([])
      .describe(
        'DNS servers that are asked whether a domain is verified; empty: those of the machine. Set it where the machine sees other answers than the public.',
      ),
  })
  .prefault({})
  .describe('Sign-in of companies that are accounts here.');

/** Members of a provider that is for one account; `claim`, `value`: as other rules of the provider are written. */
export const membership = <Claim extends z.ZodType, Value extends z.ZodType>(claim: Claim, value: Value) => ({
  account: z
    .string()
    .max(200)
    .default('')
    .describe(
      'Account that its people become members of, by name or id: their sessions are for it alone; empty: none. Set it for a client that is a company with a provider of its own.',
    ),
  member: z
    .enum(grantedRoles)
    .default('developer')
    .describe(
      'Role in that account of people whom no rule of `members` names. Set it to viewer for people who only look.',
    ),
  members: z
    .array(
      z.strictObject({
        claim,
        value,
        role: z
          .enum(grantedRoles)
          .describe('Role in the account of people with this claim. Choose admin for those who run it.'),
        project: z
          .string()
          .min(1)
          .max(100)
          .optional()
          .describe(
            'Project of the account that keys of these people are for. Set it where a group has its own project. Default: any.',
          ),
      }),
    )
    .max(50)
    .default([])
    .describe(
      'Roles and projects in that account by claims: the first that holds, looked at whenever somebody signs in. Set it so that groups at the provider decide.',
    ),
});
